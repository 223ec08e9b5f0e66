package io.cuvette.sim;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/**
 * The frees of a pool whose end the host does not know of yet, oldest first. Guarded by the
 * driver's lock.
 */
final class PoolFrees {
  private final Set<PoolFree> frees = new LinkedHashSet<>();
  private long byteSize;

  void add(PoolFree free) {
    frees.add(free);
    byteSize += free.byteSize();
  }

  /** Bytes that are freed and not back in the pool. */
  long byteSize() {
    return byteSize;
  }

  /** The oldest frees that meet a condition: enough for some bytes, or all there are. */
  List<PoolFree> first(long bytes, Predicate<PoolFree> condition) {
    List<PoolFree> found = new ArrayList<>();
    long sum = 0;
    for (PoolFree free : frees) {
      if (sum >= bytes) {
        break;
      }
      if (condition.test(free)) {
        found.add(free);
        sum += free.byteSize();
      }
    }
    return found;
  }

  /**
   * Takes bytes out of some of the frees.
   *
   * @return how many of the taken bytes are of frees that did not happen yet
   */
  long take(List<PoolFree> from, long bytes) {
    long left = bytes;
    long undone = 0;
    for (PoolFree free : from) {
      long taken = free.take(left);
      left -= taken;
      undone += free.isDone() ? 0 : taken;
      if (free.byteSize() == 0) {
        frees.remove(free);
      }
    }
    byteSize -= bytes - left;
    return undone;
  }

  /** Bytes that a condition says are back in the pool. */
  void settle(Predicate<PoolFree> condition) {
    for (Iterator<PoolFree> i = frees.iterator(); i.hasNext(); ) {
      PoolFree free = i.next();
      if (condition.test(free)) {
        byteSize -= free.byteSize();
        i.remove();
      }
    }
  }

  void ordered(SimOp waiting, SimOp dependency) {
    frees.forEach(free -> free.ordered(waiting, dependency));
  }
}
