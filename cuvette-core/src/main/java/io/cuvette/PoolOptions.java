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
 */
public record PoolOptions(
    MemoryResource upstream, @Nullable MemoryLimit limit, long crossStreamBytes) {

  /** Plain device memory, the limit of the Cuda, sharing between streams from 4 KiB on. */
  public static final PoolOptions DEFAULTS =
      new PoolOptions(MemoryResource.direct(), null, 4L << 10);

  /** Creates options. */
  public PoolOptions {
    Objects.requireNonNull(upstream, "upstream");
    Checks.notNegative("crossStreamBytes", crossStreamBytes);
  }

  /**
   * {@return these options with another upstream for chunks}
   *
   * @param resource where chunks come from
   */
  public PoolOptions withUpstream(MemoryResource resource) {
    return new PoolOptions(Objects.requireNonNull(resource, "resource"), limit, crossStreamBytes);
  }

  /**
   * {@return these options with a first limit for each device; {@link MemoryLimit#none()}, or one
   * of 0, does not limit}
   *
   * @param first the limit
   */
  public PoolOptions withLimit(MemoryLimit first) {
    return new PoolOptions(upstream, Objects.requireNonNull(first, "first"), crossStreamBytes);
  }

  /**
   * {@return these options with another size from which cached memory of idle streams is taken
   * before the pool grows}
   *
   * @param bytes the size in bytes, >= 0
   */
  public PoolOptions withCrossStreamBytes(long bytes) {
    return new PoolOptions(upstream, limit, bytes);
  }
}
