package io.cuvette.driver;

/** The attributes of a pool of the driver (CUmemPool_attribute). */
public final class MemPoolAttribute {
  /** Whether memory is reused that an event or a wait orders behind its free: 0 or 1. */
  public static final int REUSE_FOLLOW_EVENT_DEPENDENCIES = 1;

  /** Whether memory is reused whose free has completed: 0 or 1. */
  public static final int REUSE_ALLOW_OPPORTUNISTIC = 2;

  /** Whether a stream waits for the free of another to reuse its memory: 0 or 1. */
  public static final int REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3;

  /** The bytes that the pool may keep reserved at a synchronization. */
  public static final int RELEASE_THRESHOLD = 4;

  /** The bytes that the pool has from the device now. */
  public static final int RESERVED_MEM_CURRENT = 5;

  /** The most bytes that it had; 0 sets it anew. */
  public static final int RESERVED_MEM_HIGH = 6;

  /** The bytes that are allocated now. */
  public static final int USED_MEM_CURRENT = 7;

  /** The most bytes that were allocated; 0 sets it anew. */
  public static final int USED_MEM_HIGH = 8;

  /** A release threshold that keeps everything: the largest unsigned number. */
  public static final long KEEP_ALL = -1;

  private MemPoolAttribute() {}
}
