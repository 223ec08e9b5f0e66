package io.cuvette.testkit.whole;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Looks for calls of a driver that is closed or is being closed, and holds some calls before or
 * after their work until another thread calls; once the end has begun, some take long. Thread-safe.
 */
final class ClosingDriver {
  private static final int HELD_OF = 4;
  private static final long MOMENT_MICROS = 500;
  private static final int SLOW_OF = 5;
  private static final int SLOW_MICROS = 10_000;
  private static final int MOST_SLOW = 10;

  private final CudaDriver delegate;
  private final long seed;

  /** The calls that are under way, by their number. */
  private final Map<Integer, String> inside = new ConcurrentHashMap<>();

  private final AtomicInteger calls = new AtomicInteger();
  private final AtomicInteger slow = new AtomicInteger();
  private final Queue<String> late = new ConcurrentLinkedQueue<>();

  private final AtomicReference<@Nullable CountDownLatch> held = new AtomicReference<>();

  /** Who called last and was held in vain. */
  private volatile @Nullable Thread alone;

  private final CountDownLatch ended = new CountDownLatch(1);

  /** Who ends the Cuda, or what the calls are about; null before that. */
  private volatile @Nullable Thread ending;

  private volatile boolean closed;

  ClosingDriver(CudaDriver delegate, long seed) {
    this.delegate = delegate;
    this.seed = seed;
  }

  CudaDriver asDriver() {
    return DriverProxy.of(this::intercept);
  }

  boolean isClosed() {
    return closed;
  }

  /** This thread ends the Cuda, or something of it. */
  void endHere() {
    ending = Thread.currentThread();
  }

  /** The calls after the end, or at the moment of it. */
  Queue<String> late() {
    return late;
  }

  private @Nullable Object intercept(Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("close")) {
      closed = true;
      inside.values().forEach(call -> late.add("close() beside " + call));
      ended.countDown();
      return DriverProxy.forward(delegate, method, arguments);
    }
    if (!DriverProxy.isCall(method)) {
      return DriverProxy.forward(delegate, method, arguments);
    }
    int number = calls.getAndIncrement();
    SplittableRandom random = new SplittableRandom(seed + number);
    inside.put(number, method.getName());
    try {
      if (closed) {
        late.add(method.getName());
      }
      meet(random.nextInt(HELD_OF) == 0);
      beSlow(random);
      Object result = DriverProxy.forward(delegate, method, arguments);
      beSlow(random);
      meet(random.nextInt(HELD_OF) == 0);
      return result;
    } finally {
      inside.remove(number);
    }
  }

  /**
   * Lets the thread go on that is held, and holds this one in its place or not. Threads that wait
   * for this one do not call: after a moment it goes on, and is not held again before another
   * calls.
   */
  private void meet(boolean hold) {
    Thread caller = Thread.currentThread();
    CountDownLatch mine = hold && !caller.equals(alone) ? new CountDownLatch(1) : null;
    if (!caller.equals(alone)) {
      alone = null;
    }
    CountDownLatch before = held.getAndSet(mine);
    if (before != null) {
      before.countDown();
    }
    if (mine != null && !isLetGo(mine, MOMENT_MICROS)) {
      alone = caller;
    }
  }

  /** Takes long, unless the caller is the one that ends the Cuda: that one has to wait for it. */
  private void beSlow(SplittableRandom random) {
    Thread end = ending;
    if (end != null
        && !end.equals(Thread.currentThread())
        && random.nextInt(SLOW_OF) == 0
        && slow.getAndIncrement() < MOST_SLOW) {
      boolean _ = isLetGo(ended, random.nextInt(SLOW_MICROS));
    }
  }

  private static boolean isLetGo(CountDownLatch latch, long micros) {
    try {
      return latch.await(micros, TimeUnit.MICROSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return true;
    }
  }
}
