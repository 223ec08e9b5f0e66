package io.cuvette.testkit.whole;

import io.cuvette.driver.CudaDriver;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Queue;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Looks for calls of a driver that is closed or is being closed, and lets other threads run before
 * and after some calls. Thread-safe.
 */
final class ClosingDriver {
  private static final Set<String> NO_CALLS =
      Set.of("name", "toString", "isSimulated", "hashCode", "equals");

  private final CudaDriver delegate;
  private final long seed;
  private final AtomicInteger inside = new AtomicInteger();
  private final AtomicInteger calls = new AtomicInteger();
  private final Queue<String> late = new ConcurrentLinkedQueue<>();

  private volatile boolean closed;

  ClosingDriver(CudaDriver delegate, long seed) {
    this.delegate = delegate;
    this.seed = seed;
  }

  CudaDriver asDriver() {
    return (CudaDriver)
        Proxy.newProxyInstance(
            CudaDriver.class.getClassLoader(),
            new Class<?>[] {CudaDriver.class},
            (_, method, arguments) -> intercept(method, arguments));
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
      return forward(method, arguments);
    }
    if (NO_CALLS.contains(method.getName())) {
      return forward(method, arguments);
    }
    SplittableRandom random = new SplittableRandom(seed + calls.getAndIncrement());
    inside.incrementAndGet();
    try {
      if (closed) {
        late.add(method.getName());
      }
      letOthersRun(random);
      Object result = forward(method, arguments);
      letOthersRun(random);
      return result;
    } finally {
      inside.decrementAndGet();
    }
  }

  @SuppressWarnings("ThreadPriorityCheck") // to change the order of the threads is its purpose
  private static void letOthersRun(SplittableRandom random) {
    for (int i = random.nextInt(4); i > 0; i--) {
      Thread.yield();
    }
  }

  private @Nullable Object forward(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(delegate, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause() == null ? e : e.getCause();
    }
  }
}
