package io.cuvette.testkit.support;

import io.cuvette.driver.CudaDriver;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Keeps a thread inside the next call of one name until it is let go, and notes the calls that end,
 * in order. Thread-safe.
 */
public final class HeldDriver {
  private static final int PATIENCE_SECONDS = 40;

  private final CudaDriver delegate;
  private final List<String> ended = new CopyOnWriteArrayList<>();
  private volatile @Nullable Held held;

  private record Held(String call, CountDownLatch begun, CountDownLatch released) {}

  /** Over another driver. */
  public HeldDriver(CudaDriver delegate) {
    this.delegate = delegate;
  }

  /** The driver to open a Cuda with. */
  public CudaDriver asDriver() {
    return (CudaDriver)
        Proxy.newProxyInstance(
            CudaDriver.class.getClassLoader(),
            new Class<?>[] {CudaDriver.class},
            (_, method, arguments) -> intercept(method, arguments));
  }

  /** Holds the next call of a name, and forgets the calls so far. */
  public void hold(String call) {
    ended.clear();
    held = new Held(call, new CountDownLatch(1), new CountDownLatch(1));
  }

  /** Waits until a thread is inside the call; fails if none comes. */
  public void awaitBegun() throws InterruptedException {
    Held now = Objects.requireNonNull(held);
    if (!now.begun.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      throw new AssertionError("nobody called " + now.call);
    }
  }

  /** Lets the call go on. */
  public void release() {
    Objects.requireNonNull(held).released.countDown();
  }

  /** The calls that ended since {@link #hold}, the first one first. */
  public List<String> ended() {
    return List.copyOf(ended);
  }

  private @Nullable Object intercept(Method method, Object[] arguments) throws Throwable {
    Held now = held;
    if (now != null && now.call.equals(method.getName()) && now.begun.getCount() > 0) {
      now.begun.countDown();
      now.released.await();
    }
    try {
      return method.invoke(delegate, arguments);
    } catch (InvocationTargetException e) {
      throw Objects.requireNonNull(e.getCause());
    } finally {
      if (now != null) {
        ended.add(method.getName());
      }
    }
  }
}
