package io.cuvette;

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
final class PendingFrees<B extends BlockLifetime> {
  private final Consumer<B> give;
  private final ConcurrentLinkedQueue<Pending<B>> queue = new ConcurrentLinkedQueue<>();
  private final AtomicLong bytes = new AtomicLong();
  private final AtomicLong requestedBytes = new AtomicLong();
  private final AtomicInteger blocks = new AtomicInteger();

  PendingFrees(Consumer<B> give) {
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

  /** Gives the block back at once if the streams that used it are idle and it is in no graph. */
  void free(B block, @Nullable StreamState of) {
    List<Fence> fences = new ArrayList<>(block.openCaptures());
    Failures failures = new Failures();
    for (var use = block.uses(); use != null; use = use.next()) {
      guard(use.stream(), fences, failures);
    }
    StreamState home = block.home;
    if (home != null && home != of) {
      guard(home, fences, failures);
    }
    if (fences.isEmpty()) {
      give.accept(block);
    } else {
      add(block, fences);
    }
    failures.throwFirst();
  }

  /** Gives back later what no stream uses. */
  void add(B block) {
    add(block, List.of());
  }

  private void add(B block, List<Fence> fences) {
    count(block, 1);
    queue.add(new Pending<>(block, fences, new AtomicBoolean()));
  }

  /**
   * A failing driver call is thrown at the end; the block is safe by then, with a guard that asks
   * again.
   */
  private static void guard(StreamState stream, List<Fence> fences, Failures failures) {
    @Nullable Guard[] guard = {Guard.of(stream)};
    failures.run(() -> guard[0] = stream.guard());
    Guard needed = guard[0];
    if (needed != null) {
      fences.add(needed);
    }
  }

  /** Gives back what is done by now. */
  void poll() {
    for (Iterator<Pending<B>> each = queue.iterator(); each.hasNext(); ) {
      Pending<B> pending = each.next();
      if (pending.isDone() && pending.given.compareAndSet(false, true)) {
        each.remove();
        give(pending);
      }
    }
  }

  /** Waits for all that is pending now, and gives it back. */
  void await() {
    for (Pending<B> pending : queue) {
      pending.fences.forEach(Fence::await);
    }
    poll();
  }

  /** Waits for one after the other, searching after each; null if that finds nothing. */
  <T> @Nullable T await(Supplier<@Nullable T> again) {
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
    return null;
  }

  boolean isEmpty() {
    return queue.isEmpty();
  }

  /** The bytes of the pending blocks. */
  long bytes() {
    return bytes.get();
  }

  /** What of it was asked for. */
  long requestedBytes() {
    return requestedBytes.get();
  }

  /** The number of the pending blocks. */
  int blocks() {
    return blocks.get();
  }

  /** Forgets all, for a pool that is torn down. */
  void clear() {
    for (Pending<B> one = queue.poll(); one != null; one = queue.poll()) {
      if (one.given.compareAndSet(false, true)) {
        count(one.block, -1);
      }
    }
  }

  private void count(B block, int sign) {
    bytes.addAndGet(sign * block.blockBytes());
    requestedBytes.addAndGet(sign * block.requestedBytes());
    blocks.addAndGet(sign);
  }

  private void give(Pending<B> pending) {
    count(pending.block, -1);
    give.accept(pending.block);
  }
}
