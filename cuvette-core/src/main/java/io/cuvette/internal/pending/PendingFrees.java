package io.cuvette.internal.pending;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.CaptureMemory;
import io.cuvette.internal.fence.Fence;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.LeftForLater;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.FreesAfterGraphs;
import io.cuvette.internal.stream.UsedMemory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
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
 * <p>A block that goes back in order of a stream, and was used by streams that have a clock alone,
 * is in a queue and costs no call of the driver when it is closed. Others have a fence for each
 * use, which is made then.
 *
 * @param <B> the kind of block
 */
public final class PendingFrees<B extends UsedMemory> implements FreesAfterGraphs<B> {
  private final Consumer<B> give;
  private final FreeQueues<B> queues = new FreeQueues<>();
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
  @Override
  public void free(B block, @Nullable DriverStream of) {
    List<Fence> fences = null;
    RuntimeException failure;
    try {
      if (of != null && freeInOrder(block, of)) {
        return;
      }
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

  /** Whether the block is in a queue now, or has gone back. A failing call is thrown at the end. */
  private boolean freeInOrder(B block, DriverStream of) {
    if (block.isCaptured() || !block.numberUses(of)) {
      return false;
    }
    RuntimeException failure = null;
    try {
      askIfIdleBefore(block, of);
    } catch (RuntimeException e) {
      failure = e;
    }
    boolean isQueued = false;
    count(block, 1); // first: others may take it out at once
    try {
      isQueued = queues.add(block, of);
    } finally {
      if (!isQueued) {
        count(block, -1);
      }
    }
    if (!isQueued) {
      give.accept(block);
    }
    if (failure != null) {
      throw failure;
    }
    return true;
  }

  private static void askIfIdleBefore(UsedMemory block, DriverStream of) {
    for (var use = block.uses(); use != null; use = use.next()) {
      if (!use.isBefore(of)) {
        use.stream().clock.askIfIdleBefore();
      }
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
      if (!use.isKnownDone()) {
        failure = marker(use.stream(), fences, failure);
      }
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
  @Override
  public void poll() {
    int _ = poll(Integer.MAX_VALUE);
  }

  /**
   * The same, asking the driver about so many streams at most that have a clock.
   *
   * @return how many it asked about
   */
  public int poll(int most) {
    pollKnown();
    boolean any = blocks() != 0;
    Map<DriverStream, Long> asked = any ? new HashMap<>() : Map.of();
    while (any && ask(asked, most) && giveKnown()) {}
    for (Iterator<Pending<B>> each = queue.iterator(); each.hasNext(); ) {
      Pending<B> pending = each.next();
      if (pending.given.get()) {
        each.remove();
      } else if (pending.isDone()) {
        give(pending, each);
      }
    }
    return asked.size();
  }

  /**
   * Asks about streams that were not asked about yet, or not for as much: a block that waited for
   * one stream may wait for one more. False if there are none.
   */
  private boolean ask(Map<DriverStream, Long> asked, int most) {
    boolean any = false;
    for (FreeQueue<B> each : queues.inTurn(most)) {
      long wanted = each.wanted();
      long before = asked.getOrDefault(each.user, 0L);
      if (wanted > before && (before != 0 || asked.size() < most)) {
        asked.put(each.user, wanted);
        each.user.clock.ask(wanted);
        any = true;
      }
    }
    return any;
  }

  /** Gives back what is known to be done or in order, without a call of the driver. */
  public void pollKnown() {
    left.drain(this::freeLeft);
    if (blocks() != 0) {
      boolean _ = giveKnown();
    }
  }

  /** Whether some of it waits for one more stream instead. */
  private boolean giveKnown() {
    boolean again = false;
    for (FreeQueue<B> each : queues.all()) {
      giving.incrementAndGet(); // first: either it is found pending, or as being given
      try {
        for (B block = each.takeKnown(); block != null; block = each.takeKnown()) {
          again |= !giveOrQueue(block, each.home);
        }
      } finally {
        giving.decrementAndGet();
      }
    }
    return again;
  }

  private boolean giveOrQueue(B block, DriverStream home) {
    boolean isDone = !isQueuedAgain(block, home);
    if (isDone) {
      count(block, -1);
      give.accept(block);
    }
    return isDone;
  }

  /** Whether a block waits for one more stream, or for Java heap to do so. */
  private boolean isQueuedAgain(B block, DriverStream home) {
    try {
      return queues.add(block, home);
    } catch (OutOfMemoryError e) {
      left.leave(block);
      return true;
    }
  }

  /** Waits for all that is pending now, and gives it back. */
  public void await() {
    left.drain(this::freeLeft);
    for (boolean again = true; again; ) {
      again = false;
      for (FreeQueue<B> each : queues.all()) {
        again |= await(each);
      }
    }
    for (Pending<B> pending : queue) {
      pending.fences.forEach(Fence::await);
    }
    poll();
    boolean _ = awaitGiving();
  }

  /** Waits for one stream; whether some of that waits for one more now. */
  private boolean await(FreeQueue<B> from) {
    long wanted = from.wanted();
    if (wanted == 0) {
      return false;
    }
    from.user.clock.await(wanted);
    return giveKnown();
  }

  /** Waits for what other threads are giving back; false if that was nothing. */
  private boolean awaitGiving() {
    return giving.get() > 0 && Await.until(() -> giving.get() == 0, Ending.PATIENCE_NANOS);
  }

  /** Waits for one after the other, searching after each; null if that finds nothing. */
  public <T> @Nullable T await(Supplier<@Nullable T> again) {
    left.drain(this::freeLeft);
    T back = awaitQueues(again);
    if (back != null) {
      return back;
    }
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

  private <T> @Nullable T awaitQueues(Supplier<@Nullable T> again) {
    boolean goesOn = true;
    while (goesOn) {
      goesOn = false;
      for (FreeQueue<B> each : queues.all()) {
        int before = blocks();
        goesOn |= await(each);
        T found = blocks() == before ? null : again.get();
        if (found != null) {
          return found;
        }
      }
    }
    return null;
  }

  @Override
  public boolean isEmpty() {
    return blocks() == 0;
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
    for (FreeQueue<B> each : queues.all()) {
      for (B block = each.takeAny(); block != null; block = each.takeAny()) {
        count(block, -1);
      }
    }
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
