package io.cuvette;

import io.cuvette.internal.base.Checks;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How a {@link MemoryPool} works. Immutable.
 *
 * @param upstream where chunks come from; managed memory, a lambda, native functions, another pool
 * @param limit the first limit for each device; null takes that of {@link CudaOptions}
 * @param crossStreamBytes a request of at least this many bytes that finds no cached block of its
 *     stream takes the best fit, of up to eight times its size, among those of idle streams before
 *     the pool grows; smaller ones stay with their stream, as in CuPy. Long.MAX_VALUE switches it
 *     off
 * @param releaseThresholdBytes how much may stay cached after a free: what is beyond goes back to
 *     upstream as far as whole chunks are free, which waits for the device if upstream is
 *     cuMemAlloc. Long.MAX_VALUE keeps all
 * @param targetRatio what is held ÷ the most bytes in use at once, above which the pool does not
 *     grow before it has released what whole chunks are free; >= 1. The more it turns over, the
 *     more it asks of upstream, which waits for the device if it is cuMemAlloc. Infinity switches
 *     it off
 */
public record PoolOptions(
    MemoryResource upstream,
    @Nullable MemoryLimit limit,
    long crossStreamBytes,
    long releaseThresholdBytes,
    double targetRatio) {

  /**
   * Plain device memory, the limit of the Cuda, sharing between streams from 4 KiB on, all kept.
   */
  public static final PoolOptions DEFAULTS =
      new PoolOptions(
          MemoryResource.direct(), null, 4L << 10, Long.MAX_VALUE, Double.POSITIVE_INFINITY);

  /** Creates options. */
  public PoolOptions {
    Objects.requireNonNull(upstream, "upstream");
    Checks.notNegative("crossStreamBytes", crossStreamBytes);
    Checks.notNegative("releaseThresholdBytes", releaseThresholdBytes);
    if (!(targetRatio >= 1)) {
      throw new IllegalArgumentException("targetRatio: %s (expected: >= 1)".formatted(targetRatio));
    }
  }

  /**
   * {@return these options with another upstream for chunks}
   *
   * @param resource where chunks come from
   */
  public PoolOptions withUpstream(MemoryResource resource) {
    Objects.requireNonNull(resource, "resource");
    return new PoolOptions(resource, limit, crossStreamBytes, releaseThresholdBytes, targetRatio);
  }

  /**
   * {@return these options with a first limit for each device; {@link MemoryLimit#none()}, or one
   * of 0, does not limit}
   *
   * @param first the limit
   */
  public PoolOptions withLimit(MemoryLimit first) {
    Objects.requireNonNull(first, "first");
    return new PoolOptions(upstream, first, crossStreamBytes, releaseThresholdBytes, targetRatio);
  }

  /**
   * {@return these options with another size from which cached memory of idle streams is taken
   * before the pool grows}
   *
   * @param bytes the size in bytes, >= 0
   */
  public PoolOptions withCrossStreamBytes(long bytes) {
    return new PoolOptions(upstream, limit, bytes, releaseThresholdBytes, targetRatio);
  }

  /**
   * {@return these options with another bound for what stays cached}
   *
   * @param bytes the bytes, >= 0
   */
  public PoolOptions withReleaseThresholdBytes(long bytes) {
    return new PoolOptions(upstream, limit, crossStreamBytes, bytes, targetRatio);
  }

  /**
   * {@return these options with another bound for what is held, as a multiple of the most bytes in
   * use at once}
   *
   * @param ratio the bound, >= 1
   */
  public PoolOptions withTargetRatio(double ratio) {
    return new PoolOptions(upstream, limit, crossStreamBytes, releaseThresholdBytes, ratio);
  }
}
