package io.cuvette.driver;

/** What a place may do with the memory of a pool (CUmemAccess_flags). */
public final class MemAccessFlags {
  /** Nothing. */
  public static final int NONE = 0;

  /** Read it. */
  public static final int READ = 1;

  /** Read and write it. */
  public static final int READ_WRITE = 3;

  private MemAccessFlags() {}
}
