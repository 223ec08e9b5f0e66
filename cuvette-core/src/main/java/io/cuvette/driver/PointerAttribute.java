package io.cuvette.driver;

/** Attributes of an address that the driver can be queried for (CUpointer_attribute). */
public final class PointerAttribute {
  /** The {@link MemoryType}. */
  public static final int MEMORY_TYPE = 2;

  /** Whether it is managed memory: 0 or 1. */
  public static final int IS_MANAGED = 8;

  /** The device that the memory belongs to. */
  public static final int DEVICE_ORDINAL = 9;

  /** Whether cuIpcGetMemHandle can share the memory: 0 or 1. */
  public static final int IS_LEGACY_IPC_CAPABLE = 10;

  /** The address at which the allocation starts. */
  public static final int RANGE_START = 11;

  /** The bytes of the allocation. */
  public static final int RANGE_SIZE = 12;

  /** The handle of the pool that the memory is from; 0 for none. */
  public static final int MEMPOOL_HANDLE = 17;

  private PointerAttribute() {}
}
