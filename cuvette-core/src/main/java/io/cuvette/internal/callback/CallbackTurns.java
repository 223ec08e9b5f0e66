package io.cuvette.internal.callback;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.stream.DriverStream;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

/**
 * The callbacks of each stream: one runs at a time, and only so many are queued behind it. A thread
 * that adds more waits here and not in the driver, which lets no other call in while one waits for
 * room in a full queue: those of the callback neither that the queue waits for. Thread-safe.
 */
final class CallbackTurns {
  /** A stream of an H100 did not take 64 functions of the host. */
  private static final int MOST = 16;

  /** The callback that a stream came to last, unless that has returned. */
  private final ConcurrentHashMap<DriverStream, Callback> last = new ConcurrentHashMap<>();

  /** The number of callbacks that hold a stream or are going to; absent if 0. */
  private final ConcurrentHashMap<DriverStream, Integer> holding = new ConcurrentHashMap<>();

  /** Streams that did not go on while a thread waited long: for something that it does itself? */
  private final Set<DriverStream> still = ConcurrentHashMap.newKeySet();

  /**
   * Counts a callback until {@link #leave}. Waits before that while there are many, but not again
   * for a stream that stands still.
   *
   * @param isOver whether there is no use in waiting
   */
  void enter(DriverStream stream, BooleanSupplier isOver, long nanos) {
    if (!Await.until(() -> tryEnter(stream, isOver), nanos)) {
      still.add(stream);
      holding.merge(stream, 1, Integer::sum);
    }
  }

  private boolean tryEnter(DriverStream stream, BooleanSupplier isOver) {
    if (holding.merge(stream, 1, Integer::sum) <= MOST
        || still.contains(stream)
        || isOver.getAsBoolean()) {
      return true;
    }
    subtract(stream);
    return false;
  }

  private void subtract(DriverStream stream) {
    holding.computeIfPresent(stream, (_, count) -> count == 1 ? null : count - 1);
  }

  /** The stream goes on, or will never come to the callback. */
  void leave(DriverStream stream) {
    still.remove(stream);
    subtract(stream);
  }

  /**
   * Runs a step when the callback that its stream came to before has returned: two threads that add
   * callbacks at once can have the stream come to both before it waits.
   */
  void inTurn(Callback callback, Runnable step) {
    Callback before = callback.holds() ? last.put(callback.stream, callback) : null;
    if (before == null || !before.follow(step)) {
      step.run();
    }
  }

  /** Gives the next callback of the stream its turn. */
  void returned(Callback callback) {
    last.remove(callback.stream, callback);
    callback.returned();
  }
}
