package io.cuvette;

import org.jspecify.annotations.Nullable;

/** What is done about an allocation that one pool on one device has no memory for. */
final class DeviceRecovery extends Recovery<Face> {
  private final DevicePool devicePool;
  private final Request request;

  /** What the driver had free when upstream refused. */
  private long driverFree;

  DeviceRecovery(DevicePool devicePool, Request request) {
    super(devicePool.pool.session().leaks(), devicePool.turns(), request.refusals());
    this.devicePool = devicePool;
    this.request = request;
    noteRefusal();
  }

  @Override
  boolean isBeyondLimit() {
    return request.rounded() > devicePool.limitBytes();
  }

  /** Upstream is asked again once the driver has more than it had at the refusal. */
  @Override
  @Nullable Face search() {
    Refusals refusals = request.refusals();
    if (!refusals.isWorthAsking() && DirectMemory.driverFree(devicePool.device) > driverFree) {
      refusals.retry();
    }
    Face found = devicePool.search(request);
    if (found == null) {
      noteRefusal();
    }
    return found;
  }

  private void noteRefusal() {
    if (!request.refusals().isWorthAsking()) {
      driverFree = DirectMemory.driverFree(devicePool.device);
    }
  }

  @Override
  long releaseCached() {
    boolean limited = request.rounded() > devicePool.held().room();
    long released = devicePool.freeAllBlocks(null);
    return limited
        ? released
        : released + devicePool.pool.streams().relief().releaseCached(devicePool.device);
  }

  @Override
  boolean pressure() {
    return devicePool.pool.pressure(devicePool.device, request.rounded());
  }

  @Override
  @Nullable Face awaitOnce() {
    for (StreamState stream : devicePool.busyStreams(request.rounded())) {
      stream.await();
      Face found = search();
      if (found != null) {
        return found;
      }
    }
    devicePool.awaitOthers(request.rounded());
    return searchAndRelease();
  }

  @Override
  boolean mayHave() {
    return devicePool.mayHave(request.rounded());
  }

  @Override
  long takes() {
    return devicePool.takes();
  }

  @Override
  boolean hasForgotten() {
    return devicePool.hasForgotten() || devicePool.pool.streams().relief().hasForgottenPools();
  }

  @Override
  OutOfDeviceMemoryException outOfMemory(RecoveryStep step) {
    return devicePool.outOfMemory(request, step);
  }
}
