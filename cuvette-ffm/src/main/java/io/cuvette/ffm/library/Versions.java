package io.cuvette.ffm.library;

/** CUDA versions as the driver writes them: 1000 × major + 10 × minor. Thread-safe. */
public final class Versions {
  /** The oldest driver this library works with. */
  public static final int OLDEST = 12000;

  private Versions() {}

  /** A version as people write it, such as {@code 12.8}. */
  public static String text(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }
}
