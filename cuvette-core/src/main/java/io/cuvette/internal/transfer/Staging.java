package io.cuvette.internal.transfer;

import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.order.OpenStream;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The page-locked memory that the transfers of a {@code Cuda} have at once, which is bounded. A
 * transfer waits for its first chunk alone, so that those that have one go on; what it gets beyond
 * makes it faster. Thread-safe.
 */
public final class Staging {
  /** The bytes that all transfers have at most, unless chosen otherwise. */
  public static final long FIRST_LIMIT = 256L << 20;

  /** The least bound. */
  public static final long LEAST_LIMIT = 1L << 20;

  private static final System.Logger LOG = System.getLogger("io.cuvette.transfers");

  /** What is counted. */
  private static final long UNIT = 4096;

  /** How long a transfer waits for others until it goes without page-locked memory. */
  private static final long PATIENCE_MILLIS = 200;

  private final ChunkSource pinned;
  private final long limitBytes;
  private final int allUnits;
  private final Semaphore units;
  private final AtomicBoolean warned = new AtomicBoolean();

  public Staging(ChunkSource pinned, long limitBytes) {
    this.pinned = pinned;
    this.limitBytes = limitBytes;
    this.allUnits = (int) Math.min(Integer.MAX_VALUE, limitBytes / UNIT);
    this.units = new Semaphore(allUnits, true);
  }

  /** The most bytes that a chunk may have: a transfer goes on with two. */
  long mostBytes() {
    return limitBytes / 2 / HostParts.PIECE_BYTES * HostParts.PIECE_BYTES;
  }

  /** The bytes that transfers have now, rounded up. */
  public long usedBytes() {
    return (allUnits - units.availablePermits()) * UNIT;
  }

  /** A pool may round sizes up by an eighth. */
  private static int units(long bytes) {
    long rounded = Long.bitCount(bytes) == 1 ? bytes : bytes + bytes / Byte.SIZE;
    return (int) ((rounded + UNIT - 1) / UNIT);
  }

  /**
   * The first chunk of a transfer; where there is no page-locked memory, one of other memory.
   *
   * @param canWait whether this thread may wait for other transfers
   */
  StagingChunk first(Memory device, OpenStream stream, long bytes, boolean canWait) {
    int wanted = units(bytes);
    if (!acquire(wanted, canWait)) {
      return StagingChunk.unlocked(device, stream, bytes);
    }
    StagingChunk chunk = null;
    try {
      chunk = make(device, stream, wanted, () -> pinned.allocate(bytes, stream));
    } catch (OutOfPinnedMemoryException e) {
      warn(bytes, e);
    } finally {
      if (chunk == null) {
        units.release(wanted);
      }
    }
    return chunk != null ? chunk : StagingChunk.unlocked(device, stream, bytes);
  }

  /** One more chunk, if there is memory for it now; else null. */
  @Nullable StagingChunk more(Memory device, OpenStream stream, long bytes) {
    int wanted = units(bytes);
    if (!units.tryAcquire(wanted)) {
      return null;
    }
    StagingChunk chunk = null;
    try {
      chunk = make(device, stream, wanted, () -> pinned.tryAllocate(bytes, stream));
      return chunk;
    } finally {
      if (chunk == null) {
        units.release(wanted);
      }
    }
  }

  private @Nullable StagingChunk make(
      Memory device, OpenStream stream, int wanted, Supplier<@Nullable Memory> source) {
    Memory memory = source.get();
    return memory == null
        ? null
        : StagingChunk.pinned(device, stream, memory, () -> units.release(wanted));
  }

  /** Keeps an interrupt. */
  private boolean acquire(int wanted, boolean canWait) {
    if (units.tryAcquire(wanted)) {
      return true;
    }
    boolean interrupted = false;
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS);
    try {
      while (canWait) {
        try {
          return units.tryAcquire(wanted, end - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      return false;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void warn(long bytes, OutOfPinnedMemoryException e) {
    if (warned.compareAndSet(false, true)) {
      LOG.log(
          System.Logger.Level.WARNING,
          ("no page-locked memory for a transfer (%d bytes), which goes on without, more slowly;"
                  + " this is said once: %s")
              .formatted(bytes, e.getMessage()));
    }
  }
}
