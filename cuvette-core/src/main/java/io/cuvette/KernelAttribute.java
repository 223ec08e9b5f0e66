package io.cuvette;

/**
 * The numbers a kernel has on a device, with the names and codes of cuda.h 13.0
 * (CUfunction_attribute).
 */
public enum KernelAttribute {
  /** The most threads of a block. */
  MAX_THREADS_PER_BLOCK(0),
  /** The static shared memory of a block, in bytes. */
  SHARED_SIZE_BYTES(1),
  /** The constant memory of the user, in bytes. */
  CONST_SIZE_BYTES(2),
  /** The local memory of a thread, in bytes. */
  LOCAL_SIZE_BYTES(3),
  /** The registers of a thread. */
  NUM_REGS(4),
  /** The version of PTX it was compiled for: 10 times major plus minor. */
  PTX_VERSION(5),
  /** The architecture it was compiled for: 10 times major plus minor. */
  BINARY_VERSION(6),
  /** Whether global loads go through the first cache by default: 0 or 1. */
  CACHE_MODE_CA(7),
  /** The most dynamic shared memory of a block, in bytes. Can be set. */
  MAX_DYNAMIC_SHARED_SIZE_BYTES(8),
  /** The preferred part of the first cache that is shared memory, in percent. Can be set. */
  PREFERRED_SHARED_MEMORY_CARVEOUT(9),
  /** Whether it cannot be launched without a cluster: 0 or 1. */
  CLUSTER_SIZE_MUST_BE_SET(10),
  /** The width that a cluster must have, in blocks; 0 for any. */
  REQUIRED_CLUSTER_WIDTH(11),
  /** The height that a cluster must have, in blocks; 0 for any. */
  REQUIRED_CLUSTER_HEIGHT(12),
  /** The depth that a cluster must have, in blocks; 0 for any. */
  REQUIRED_CLUSTER_DEPTH(13),
  /** Whether clusters may be larger than every device with clusters can run. Can be set. */
  NON_PORTABLE_CLUSTER_SIZE_ALLOWED(14),
  /** How clusters are spread (CUclusterSchedulingPolicy). Can be set. */
  CLUSTER_SCHEDULING_POLICY_PREFERENCE(15);

  private final int code;

  KernelAttribute(int code) {
    this.code = code;
  }

  /** {@return the CUfunction_attribute} */
  public int code() {
    return code;
  }
}
