package io.cuvette.internal.base;

/** CUDA versions as the driver writes them: 1000 × major + 10 × minor. Stateless. */
public final class CudaVersion {
  private CudaVersion() {}

  /** A version as people write it, such as {@code 12.8}. */
  public static String text(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }

  /** Says that a driver is too old, and what is needed. */
  public static String tooOld(int version, int least) {
    return "the driver supports CUDA %s (expected: >= %s)".formatted(text(version), text(least));
  }
}
