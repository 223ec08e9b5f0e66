package io.cuvette.testkit.support;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.OutOfPinnedMemoryException;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Makes things that nobody closes, and waits for the collector within bounds. Stateless. */
public final class Forgetting {
  private static final int FEW = 4;
  private static final int TURNS = 2;
  private static final long APART_MILLIS = 150;
  private static final long PATIENCE_MILLIS = 60_000;
  private static final CountDownLatch NEVER = new CountDownLatch(1);

  private Forgetting() {}

  /** Makes things on a thread of their own, so that no stack frame keeps them. */
  public static void of(Supplier<?> make) throws InterruptedException {
    of(1, make);
  }

  /** Makes a number of things and forgets them. */
  public static void of(int count, Supplier<?> make) throws InterruptedException {
    Throwable[] thrown = new Throwable[1];
    Thread thread =
        Thread.ofPlatform()
            .start(() -> {
              try {
                for (int i = 0; i < count; i++) {
                  make.get();
                }
              } catch (RuntimeException | Error e) {
                thrown[0] = e;
              }
            });
    thread.join();
    if (thrown[0] != null) {
      throw new AssertionError(thrown[0]);
    }
  }

  /** Collects until the condition holds; whether it did in the end. */
  public static boolean collectUntil(BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS);
    do {
      System.gc();
      if (condition.getAsBoolean()) {
        return true;
      }
      pause();
    } while (System.nanoTime() - end < 0);
    return condition.getAsBoolean();
  }

  /** Collects a few times, for a test that nothing is found. */
  public static void collect() throws InterruptedException {
    for (int i = 0; i < FEW; i++) {
      System.gc();
      pause();
    }
  }

  /** Collects until the collector has handed over what was forgotten before. */
  public static void collectAll() throws InterruptedException {
    ReferenceQueue<Object> queue = new ReferenceQueue<>();
    for (int i = 0; i < TURNS; i++) {
      var canary = new PhantomReference<>(new Object(), queue);
      System.gc();
      if (queue.remove(PATIENCE_MILLIS) != canary) {
        throw new AssertionError("nothing was collected in " + PATIENCE_MILLIS + " ms");
      }
    }
  }

  /** Tries again while memory is out: the library collects once before it says so. */
  public static <T> T retry(Supplier<T> allocate) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS);
    while (true) {
      try {
        return allocate.get();
      } catch (OutOfDeviceMemoryException | OutOfPinnedMemoryException e) {
        if (System.nanoTime() - end >= 0) {
          throw new AssertionError("nothing was reclaimed in " + PATIENCE_MILLIS + " ms", e);
        }
        pause();
      }
    }
  }

  private static void pause() throws InterruptedException {
    boolean _ = NEVER.await(APART_MILLIS, TimeUnit.MILLISECONDS);
  }
}
