package io.cuvette.internal.stream;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.CaptureMemory;
import io.cuvette.internal.fence.Fence;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.LeftForLater;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Blocks whose buffers are closed while other streams or captured graphs may still use them: they
 * come back when that use is over. Nothing here waits but {@link #await}. Thread-safe.
 *
 * @param <B> the kind of block
 */
public final class PendingFrees<B extends UsedMemory> {
  private final Consumer<B> give;
  private final ConcurrentLinkedQueue<Pending<B>> queue = new ConcurrentLinkedQueue<>();

  /** What came when there was no Java heap; it is counted too. */
  private final LeftForLater left = new LeftForLater();

  private final AtomicLong bytes = new AtomicLong();
  private final AtomicLong requestedBytes = new AtomicLong();
  private final AtomicInteger blocks = new AtomicInteger();

  /** The blocks that threads are freeing at this moment, which cannot be found meanwhile. */
  private final AtomicInteger giving = new AtomicInteger();

  public PendingFrees(Consumer<B> give) {
    this.give = give;
  }

  private record Pending<B>(B block, List<Fence> fences, AtomicBoolean given) {
    boolean isDone() {
      for (Fence fence : fences) {
        if (!fence.isDone()) {
          return false;
        }
      }
      return true;
    }
  }

  /**
   * Gives the block back at once if the streams that used it are idle and it is in no graph. What
   * there is no Java heap to wait for now is looked at again with a later call.
   */
  public void free(B block, @Nullable DriverStream of) {
    List<Fence> fences = null;
    RuntimeException failure;
    try {
      fences = captures(block, of);
      failure = markAll(block, of, fences);
    } catch (OutOfMemoryError e) {
      abandon(fences);
      count(block, 1);
      left.leave(block);
      return;
    }
    if (fences.isEmpty()) {
      give.accept(block);
    } else {
      add(block, fences);
    }
    if (failure != null) {
      throw failure;
    }
  }

  private static List<Fence> captures(UsedMemory block, @Nullable DriverStream of) {
    CaptureMemory memory = of == null ? null : of.memoryOf();
    List<Fence> fences = new ArrayList<>();
    for (Capture capture : block.openCaptures()) {
      fences.add(capture.isOverFor(memory));
    }
    return fences;
  }

  private static @Nullable RuntimeException markAll(
      UsedMemory block, @Nullable DriverStream of, List<Fence> fences) {
    RuntimeException failure = null;
    for (var use = block.uses(); use != null; use = use.next()) {
      failure = marker(use.stream(), fences, failure);
    }
    DriverStream home = block.home;
    return home == null || home == of ? failure : marker(home, fences, failure);
  }

  /** Gives back later what no stream uses. */
  public void add(B block) {
    add(block, List.of());
  }

  private void add(B block, List<Fence> fences) {
    count(block, 1);
    Pending<B> pending = null;
    try {
      pending = new Pending<>(block, fences, new AtomicBoolean());
      queue.add(pending);
    } catch (OutOfMemoryError e) {
      // It is there all the same if there was no heap for what the queue does last.
      if (pending == null || pending.given.compareAndSet(false, true)) {
        abandon(fences);
        left.leave(block);
      }
    }
  }

  private static void abandon(@Nullable List<Fence> fences) {
    if (fences != null) {
      for (int i = 0; i < fences.size(); i++) {
        fences.get(i).abandon();
      }
    }
  }

  @SuppressWarnings("unchecked") // nothing else was left
  private boolean freeLeft(Ending one) {
    B block = (B) one;
    count(block, -1);
    free(block, null);
    return true;
  }

  /**
   * A failing driver call is thrown at the end; the block is safe by then, with a marker that asks
   * again.
   */
  private static @Nullable RuntimeException marker(
      DriverStream stream, List<Fence> fences, @Nullable RuntimeException before) {
    @Nullable WorkMarker marker;
    RuntimeException failure = before;
    try {
      marker = stream.marker();
    } catch (RuntimeException e) {
      marker = WorkMarker.of(stream);
      failure = Failures.joined(before, e);
    }
    if (marker != null) {
      add(marker, fences);
    }
    return failure;
  }

  private static void add(WorkMarker marker, List<Fence> fences) {
    try {
      fences.add(marker);
    } catch (OutOfMemoryError e) {
      marker.abandon();
      throw e;
    }
  }

  /** Gives back what is done by now. */
  public void poll() {
    left.drain(this::freeLeft);
    for (Iterator<Pending<B>> each = queue.iterator(); each.hasNext(); ) {
      Pending<B> pending = each.next();
      if (pending.given.get()) {
        each.remove();
      } else if (pending.isDone()) {
        give(pending, each);
      }
    }
  }

  /** Waits for all that is pending now, and gives it back. */
  public void await() {
    left.drain(this::freeLeft);
    for (Pending<B> pending : queue) {
      pending.fences.forEach(Fence::await);
    }
    poll();
    boolean _ = awaitGiving();
  }

  /** Waits for what other threads are giving back; false if that was nothing. */
  private boolean awaitGiving() {
    return giving.get() > 0 && Await.until(() -> giving.get() == 0, Ending.PATIENCE_NANOS);
  }

  /** Waits for one after the other, searching after each; null if that finds nothing. */
  public <T> @Nullable T await(Supplier<@Nullable T> again) {
    left.drain(this::freeLeft);
    for (Pending<B> pending : queue) {
      int before = blocks();
      if (!pending.given.get()) {
        pending.fences.forEach(Fence::await);
        poll();
      }
      T found = blocks() == before ? null : again.get();
      if (found != null) {
        return found;
      }
    }
    return awaitGiving() ? again.get() : null;
  }

  public boolean isEmpty() {
    return queue.isEmpty() && left.isEmpty();
  }

  /** The bytes of the pending blocks. */
  public long bytes() {
    return bytes.get();
  }

  /** The bytes of the pending blocks that graphs may use. */
  public long graphBytes() {
    long sum = 0;
    for (Pending<B> pending : queue) {
      if (!pending.given.get() && pending.block.isCaptured()) {
        sum += pending.block.blockBytes();
      }
    }
    return sum;
  }

  /** The requested size. */
  public long requestedBytes() {
    return requestedBytes.get();
  }

  /** The number of the pending blocks. */
  public int blocks() {
    return blocks.get();
  }

  /** Forgets all, for a pool that is torn down. */
  public void clear() {
    left.drain(this::forget);
    for (Pending<B> one = queue.poll(); one != null; one = queue.poll()) {
      if (one.given.compareAndSet(false, true)) {
        count(one.block, -1);
      }
    }
  }

  @SuppressWarnings("unchecked") // nothing else was left
  private boolean forget(Ending one) {
    count((B) one, -1);
    return true;
  }

  private void count(B block, int sign) {
    bytes.addAndGet(sign * block.blockBytes());
    requestedBytes.addAndGet(sign * block.requestedBytes());
    blocks.addAndGet(sign);
  }

  private void give(Pending<B> pending, Iterator<Pending<B>> at) {
    giving.incrementAndGet(); // first: either it is found pending, or as being given
    try {
      if (pending.given.compareAndSet(false, true)) {
        at.remove();
        count(pending.block, -1);
        give.accept(pending.block);
      }
    } finally {
      giving.decrementAndGet();
    }
  }
}
