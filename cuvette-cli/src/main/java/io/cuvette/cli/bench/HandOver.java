package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A producer allocates, a consumer on another thread frees. Both end when one of them fails.
 * Thread-safe as far as one producer and one consumer need.
 */
final class HandOver {
  private static final int SLOTS = 256;

  /** So often one waits for the other before it lets another thread run. */
  private static final int SPINS = 1000;

  private final MemoryResource pool;
  private final CudaStream stream;
  private final long bytes;

  /** Blocks on their way; a slot that holds null is empty. */
  private final AtomicReferenceArray<@Nullable Buffer> slots = new AtomicReferenceArray<>(SLOTS);

  /** How many of the two have failed. */
  private final AtomicInteger failed = new AtomicInteger();

  HandOver(MemoryResource pool, CudaStream stream, long bytes) {
    this.pool = pool;
    this.stream = stream;
    this.bytes = bytes;
  }

  /** That of the producer and that of the consumer. */
  List<Rate.Task> tasks() {
    return List.of(turns -> orFail(() -> produce(turns)), turns -> orFail(() -> consume(turns)));
  }

  private void orFail(Runnable work) {
    boolean done = false;
    try {
      work.run();
      done = true;
    } finally {
      if (!done) {
        failed.incrementAndGet();
      }
    }
  }

  private void produce(int turns) {
    for (int i = 0; i < turns; i++) {
      int slot = i & SLOTS - 1;
      Buffer block = pool.allocate(bytes, stream);
      if (!isReached(slot, false)) {
        block.close();
        return;
      }
      slots.setRelease(slot, block);
    }
  }

  private void consume(int turns) {
    for (int i = 0; i < turns; i++) {
      int slot = i & SLOTS - 1;
      if (!isReached(slot, true)) {
        return;
      }
      Buffer block = slots.getAcquire(slot);
      slots.setRelease(slot, null);
      if (block != null) {
        block.close();
      }
    }
  }

  /** Waits until a slot is full, or empty; false if the other one failed. */
  private boolean isReached(int slot, boolean full) {
    for (int spins = 1; (slots.getAcquire(slot) != null) != full; spins++) {
      if (failed.get() != 0) {
        return false;
      }
      if (spins % SPINS == 0) {
        LockSupport.parkNanos(1);
      } else {
        Thread.onSpinWait();
      }
    }
    return true;
  }
}
