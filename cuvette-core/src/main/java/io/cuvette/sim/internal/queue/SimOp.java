package io.cuvette.sim.internal.queue;

import io.cuvette.sim.internal.base.SimRefusal;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One operation in the queue of a stream; others can wait for its end. Guarded by the driver's
 * lock.
 */
public final class SimOp {
  /** The stream it was queued on. */
  public final SimStream stream;

  public final long costNanos;

  /** When the host queued it; it cannot start before. */
  public final long queuedNanos;

  private Runnable work;
  private @Nullable Runnable hostFunction;
  private @Nullable SimOp dependency;
  private @Nullable BooleanSupplier outside;
  private @Nullable Supplier<String> outsideText;
  private @Nullable Runnable whenDone;
  private @Nullable List<SimQueue> blocked;
  private List<? extends HeldMemory> held = List.of();
  private long number;
  private boolean done;
  private long endNanos;

  private SimOp(
      SimStream stream,
      Runnable work,
      @Nullable Runnable hostFunction,
      @Nullable SimOp dependency,
      long costNanos,
      long queuedNanos) {
    this.stream = stream;
    this.work = work;
    this.hostFunction = hostFunction;
    this.dependency = dependency;
    this.costNanos = costNanos;
    this.queuedNanos = queuedNanos;
  }

  /** Work of the device, which may fail with a {@link SimRefusal}. */
  public static SimOp work(SimStream stream, Runnable work, long costNanos, long queuedNanos) {
    return new SimOp(stream, work, null, null, costNanos, queuedNanos);
  }

  /** No work: a point that can be waited for. */
  public static SimOp point(SimStream stream, long queuedNanos) {
    return work(stream, SimOp::nothing, 0, queuedNanos);
  }

  /** No work, but the stream stops here until another operation is done. */
  public static SimOp waiting(SimStream stream, SimOp dependency, long queuedNanos) {
    return new SimOp(stream, SimOp::nothing, null, dependency, 0, queuedNanos);
  }

  /** Some work, before which the stream stops until something outside of the driver is done. */
  public static SimOp waitingOutside(
      SimStream stream, BooleanSupplier outside, Runnable work, long queuedNanos) {
    SimOp op = work(stream, work, 0, queuedNanos);
    op.outside = outside;
    return op;
  }

  /** Says what outside of the driver the operation waits for. */
  public SimOp waitsFor(Supplier<String> text) {
    outsideText = text;
    return this;
  }

  /** A function of the host, which runs on a thread of the driver. */
  public static SimOp host(SimStream stream, Runnable function, long queuedNanos) {
    return new SimOp(stream, SimOp::nothing, function, null, 0, queuedNanos);
  }

  private static void nothing() {}

  /** The same work once more, in another stream; for what was captured and never runs itself. */
  public SimOp again(SimStream in, long queued) {
    SimOp op = new SimOp(in, work, hostFunction, null, costNanos, queued);
    op.outside = outside;
    op.outsideText = outsideText;
    op.held = held;
    return op;
  }

  /** Says what the operation holds. */
  public SimOp holding(List<? extends HeldMemory> memory) {
    held = memory;
    return this;
  }

  /** What the operation holds. */
  public List<? extends HeldMemory> held() {
    return held;
  }

  /** Says which operation of its stream this is. */
  public void number(long value) {
    number = value;
  }

  /** Which operation of its stream this is, from 1; 0 before it is queued. */
  public long number() {
    return number;
  }

  public Runnable work() {
    return work;
  }

  public @Nullable Runnable hostFunction() {
    return hostFunction;
  }

  public @Nullable SimOp dependency() {
    return dependency;
  }

  /** What outside of the driver the operation waits for; null if it does not. */
  public @Nullable BooleanSupplier outside() {
    return outside;
  }

  /** Runs something short once the operation is done, or never will be done. */
  public void whenDone(Runnable action) {
    whenDone = action;
  }

  /** What an operation that is not done is, for who wonders why others wait for it. */
  String describe() {
    if (hostFunction != null) {
      return "a host function";
    } else if (outsideText != null) {
      return outsideText.get();
    } else if (dependency != null) {
      return "a wait for operation %d of the stream of ID %d"
          .formatted(dependency.number, dependency.stream.id);
    }
    return outside == null ? "work of the device" : "a wait for the host";
  }

  public boolean isDone() {
    return done;
  }

  public long endNanos() {
    return endNanos;
  }

  /** When the operation starts if its stream gets to it at some time. */
  public long startNanos(long streamNanos) {
    long start = Math.max(streamNanos, queuedNanos);
    return dependency == null ? start : Math.max(start, dependency.endNanos);
  }

  public void block(SimQueue waiting) {
    if (blocked == null) {
      blocked = new ArrayList<>(2);
    }
    blocked.add(waiting);
  }

  /**
   * Ends the operation and releases all it holds: events keep their last one.
   *
   * @return the queues that wait for it
   */
  public List<SimQueue> finish(long nanos) {
    List<SimQueue> waiting = blocked == null ? List.of() : blocked;
    if (whenDone != null) {
      whenDone.run();
    }
    held.forEach(HeldMemory::done);
    held = List.of();
    done = true;
    endNanos = nanos;
    work = SimOp::nothing;
    hostFunction = null;
    dependency = null;
    outside = null;
    outsideText = null;
    whenDone = null;
    blocked = null;
    return waiting;
  }
}
