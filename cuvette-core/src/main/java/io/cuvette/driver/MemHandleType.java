package io.cuvette.driver;

/** How other processes import a pool or other memory (CUmemAllocationHandleType). */
public final class MemHandleType {
  /** Not at all. */
  public static final int NONE = 0;

  /** By a file descriptor (POSIX). */
  public static final int FILE_DESCRIPTOR = 1;

  private MemHandleType() {}
}
