package io.cuvette.testkit.crowd;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Things that threads share: anyone uses any of them, whoever takes one out ends it. Thread-safe.
 */
final class Bag<T> {
  private final int most;
  private final List<T> all = new ArrayList<>();

  /** A bag of as many things, more or less. */
  Bag(int most) {
    this.most = most;
  }

  synchronized boolean isFull() {
    return all.size() >= most;
  }

  synchronized void add(T one) {
    all.add(one);
  }

  synchronized @Nullable T any(SplittableRandom random) {
    return all.isEmpty() ? null : all.get(random.nextInt(all.size()));
  }

  synchronized @Nullable T take(SplittableRandom random) {
    return all.isEmpty() ? null : all.remove(random.nextInt(all.size()));
  }

  synchronized List<T> takeAll() {
    List<T> taken = List.copyOf(all);
    all.clear();
    return taken;
  }
}
