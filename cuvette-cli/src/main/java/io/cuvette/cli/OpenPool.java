package io.cuvette.cli;

import io.cuvette.MemoryLimit;
import io.cuvette.MemoryResource;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A pool that a command made to measure it. Closing it gives its memory back. Immutable.
 *
 * @param resource the pool
 * @param end what gives its memory back
 * @param limit what sets its limit; null if it has none
 * @param held what it holds; null if that is just the blocks in use
 */
public record OpenPool(
    MemoryResource resource,
    Runnable end,
    @Nullable Consumer<MemoryLimit> limit,
    @Nullable Held held)
    implements AutoCloseable {

  /**
   * The bytes that a pool holds from the driver. Thread-safe.
   *
   * @param now those at this moment
   * @param peak the most so far
   */
  public record Held(LongSupplier now, LongSupplier peak) {}

  @Override
  public void close() {
    end.run();
  }
}
