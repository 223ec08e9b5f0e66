package io.cuvette;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How a {@link PinnedMemoryPool} works. Immutable.
 *
 * @param upstream where memory comes from; null is the driver's page-locked memory
 * @param limit a limit in bytes, or none; a fraction has no meaning for host memory
 */
public record PinnedPoolOptions(@Nullable PinnedAllocator upstream, MemoryLimit limit) {

  /** The driver's page-locked memory, no limit. */
  public static final PinnedPoolOptions DEFAULTS = new PinnedPoolOptions(null, MemoryLimit.none());

  /** Creates options. */
  public PinnedPoolOptions {
    Objects.requireNonNull(limit, "limit");
    checkLimit(limit);
  }

  /**
   * {@return these options with another upstream}
   *
   * @param allocator the allocator
   */
  public PinnedPoolOptions withUpstream(PinnedAllocator allocator) {
    return new PinnedPoolOptions(Objects.requireNonNull(allocator, "allocator"), limit);
  }

  /**
   * {@return these options with a limit in bytes; {@link MemoryLimit#none()}, or one of 0, does not
   * limit}
   *
   * @param bytes the size in bytes, >= 0
   */
  public PinnedPoolOptions withLimit(MemoryLimit bytes) {
    return new PinnedPoolOptions(upstream, Objects.requireNonNull(bytes, "bytes"));
  }

  static void checkLimit(MemoryLimit limit) {
    if (limit instanceof MemoryLimit.Fraction) {
      throw new IllegalArgumentException(
          "limit: %s of host memory (expected: bytes or none)".formatted(limit));
    }
  }
}
