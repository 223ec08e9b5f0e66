package io.cuvette.internal.devicepool;

import io.cuvette.internal.session.Device;

/** Is called when a caching pool allocates, frees or grows. */
public interface PoolHook {
  /**
   * A block, or a request to upstream.
   *
   * @param requestedBytes the requested size
   * @param blockBytes the rounded size
   * @param address where it is; 0 before it is there, and after a failure
   * @param id the same number for a block's way out and back; 0 like the address
   */
  record Call(Device device, long requestedBytes, long blockBytes, long address, long id) {}

  void beforeGrowth(Call call);

  void afterGrowth(Call call);

  void beforeAllocation(Call call);

  void afterAllocation(Call call);

  void beforeFree(Call call);

  void afterFree(Call call);

  /** The hook as the user knows it. */
  Object user();
}
