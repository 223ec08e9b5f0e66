package io.cuvette.internal.pending;

import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Locked;
import io.cuvette.internal.base.Rotation;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.StreamUse;
import io.cuvette.internal.stream.UsedMemory;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/**
 * The queues of closed blocks, one for each pair of a stream that used them and one in whose order
 * they go back. Thread-safe.
 *
 * @param <B> the kind of block
 */
final class FreeQueues<B extends UsedMemory> {
  private final ConcurrentHashMap<Pair, FreeQueue<B>> byPair = new ConcurrentHashMap<>();

  /** In the order in which they were made, so that what is asked does not depend on luck. */
  private final CopyOnWriteArrayList<FreeQueue<B>> all = new CopyOnWriteArrayList<>();

  /** Held by who makes one or forgets some: else one could end before others find it. */
  private final Lock making = new BargingLock();

  /** Of those who ask some streams only. */
  private final Rotation turn = new Rotation();

  private record Pair(DriverStream user, DriverStream home) {}

  /**
   * Adds a block whose uses have numbers to the queue of a stream whose work is not done.
   *
   * @return false if there is no such stream
   */
  boolean add(B block, DriverStream home) {
    while (true) {
      StreamUse use = unfinished(block, home);
      if (use == null) {
        return false;
      }
      if (queue(use.stream(), home).add(block, use)) {
        return true;
      }
    }
  }

  private static @Nullable StreamUse unfinished(UsedMemory block, DriverStream home) {
    StreamUse use = block.uses();
    while (use != null && use.isBefore(home)) {
      use = use.next();
    }
    return use;
  }

  private FreeQueue<B> queue(DriverStream user, DriverStream home) {
    Pair pair = new Pair(user, home);
    FreeQueue<B> known = byPair.get(pair);
    return known != null ? known : Locked.get(making, () -> made(pair));
  }

  /** Makes one if there is none, and forgets those of streams that are closed. */
  private FreeQueue<B> made(Pair pair) {
    for (FreeQueue<B> each : all) {
      Pair its = new Pair(each.user, each.home); // first: one that has ended must be forgotten
      if (each.endIfOver()) {
        byPair.remove(its, each);
        boolean _ = all.remove(each);
      }
    }
    FreeQueue<B> known = byPair.get(pair);
    if (known != null) {
      return known;
    }
    FreeQueue<B> next = new FreeQueue<>(pair.user, pair.home);
    all.add(next); // first: what is in a queue is found
    byPair.put(pair, next);
    return next;
  }

  /** In the order in which they were made. */
  Iterable<FreeQueue<B>> all() {
    return all;
  }

  /** The same, but that those come first whose turn it is to be asked. */
  List<FreeQueue<B>> inTurn(int most) {
    return turn.of(all, most);
  }
}
