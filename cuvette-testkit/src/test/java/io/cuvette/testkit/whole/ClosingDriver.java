package io.cuvette.testkit.whole;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;
import java.lang.reflect.Method;
import java.util.Queue;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Looks for calls of a driver that is closed or is being closed, and holds some calls before or
 * after their work until another thread calls. Thread-safe.
 */
final class ClosingDriver {
  private static final Set<String> NO_CALLS = Set.of("name", "toString", "isSimulated");

  private static final int HELD_OF = 4;
  private static final long MOMENT_MICROS = 500;

  private final CudaDriver delegate;
  private final long seed;
  private final AtomicInteger inside = new AtomicInteger();
  private final AtomicInteger calls = new AtomicInteger();
  private final Queue<String> late = new ConcurrentLinkedQueue<>();

  private final AtomicReference<@Nullable CountDownLatch> held = new AtomicReference<>();

  /** Who called last and was held in vain. */
  private volatile @Nullable Thread alone;

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

  /** The calls after the end, or at the moment of it. */
  Queue<String> late() {
    return late;
  }

  private @Nullable Object intercept(Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("close")) {
      closed = true;
      int others = inside.get();
      if (others > 0) {
        late.add("close() with " + others + " calls under way");
      }
      return DriverProxy.forward(delegate, method, arguments);
    }
    if (NO_CALLS.contains(method.getName())) {
      return DriverProxy.forward(delegate, method, arguments);
    }
    SplittableRandom random = new SplittableRandom(seed + calls.getAndIncrement());
    inside.incrementAndGet();
    try {
      if (closed) {
        late.add(method.getName());
      }
      meet(random.nextInt(HELD_OF) == 0);
      Object result = DriverProxy.forward(delegate, method, arguments);
      meet(random.nextInt(HELD_OF) == 0);
      return result;
    } finally {
      inside.decrementAndGet();
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
    if (mine != null && !isLetGo(mine)) {
      alone = caller;
    }
  }

  private static boolean isLetGo(CountDownLatch latch) {
    try {
      return latch.await(MOMENT_MICROS, TimeUnit.MICROSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return true;
    }
  }
}
