package io.cuvette.testkit.races;

import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** Threads that stop once inside the driver, until all of them are there or done. Thread-safe. */
final class Held implements Stop {
  private final Set<Thread> expected = ConcurrentHashMap.newKeySet();
  private final CountDownLatch arrived;
  private final CountDownLatch released = new CountDownLatch(1);

  Held(int threads) {
    arrived = new CountDownLatch(threads);
  }

  /** The current thread will stop at its next call. */
  void join() {
    expected.add(Thread.currentThread());
  }

  /** Stops the current thread if it is one of the group and did not stop before. */
  @Override
  public void beforeCall() throws InterruptedException {
    if (expected.remove(Thread.currentThread())) {
      arrived.countDown();
      released.await();
    }
  }

  /** The current thread is done; it may never have called the driver. */
  void leave() {
    if (expected.remove(Thread.currentThread())) {
      arrived.countDown();
    }
  }

  /** Whether all came in time. */
  boolean awaitAll(long time, TimeUnit unit) throws InterruptedException {
    return arrived.await(time, unit);
  }

  /** Who is neither here nor done. */
  Set<String> missing() {
    return expected.stream().map(Thread::getName).collect(Collectors.toCollection(TreeSet::new));
  }

  void release() {
    released.countDown();
  }
}
