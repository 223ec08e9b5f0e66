package io.cuvette.internal.base;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Lets each of many have its turn where only some are looked at: who comes next begins where the
 * one before ended. Thread-safe.
 */
public final class Rotation {
  private final AtomicInteger turn = new AtomicInteger();

  /** All of them; the first {@code most} are those whose turn it is. */
  public <T> List<T> of(Collection<T> all, int most) {
    List<T> now = new ArrayList<>(all);
    if (now.size() <= most) {
      return now;
    }
    int from = Math.floorMod(turn.getAndAdd(most), now.size());
    List<T> rotated = new ArrayList<>(now.subList(from, now.size()));
    rotated.addAll(now.subList(0, from));
    return rotated;
  }
}
