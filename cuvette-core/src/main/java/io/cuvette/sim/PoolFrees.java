package io.cuvette.sim;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Predicate;

/**
 * The frees of a pool whose end the host does not know of yet, oldest first. Guarded by the
 * driver's lock.
 */
final class PoolFrees {
  private final List<PoolFree> frees = new ArrayList<>();
  private long byteSize;

  void add(PoolFree free) {
    frees.add(free);
    byteSize += free.byteSize();
  }

  boolean isEmpty() {
    return frees.isEmpty();
  }

  /** Bytes that are freed and not back in the pool. */
  long byteSize() {
    return byteSize;
  }

  List<PoolFree> matching(Predicate<PoolFree> condition) {
    return frees.stream().filter(condition).toList();
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
    }
    byteSize -= bytes - left;
    frees.removeIf(free -> free.byteSize() == 0);
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
