package io.cuvette.ffm.foreign;

import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/**
 * Keeps an arena from being closed, as long as a thread sleeps inside a call of C that was given
 * memory of it: the search of one element, whose comparison is a function of Java. Thread-safe.
 */
final class ArenaKeeper implements Runnable {
  private static final long STACK_BYTES = 256 << 10;

  private static final MethodHandle SEARCH =
      NativeAccess.function(
          "bsearch",
          FunctionDescriptor.of(
              Layouts.POINTER,
              Layouts.SEGMENT,
              Layouts.SEGMENT,
              Layouts.SIZE,
              Layouts.SIZE,
              Layouts.SEGMENT));

  private static final MemorySegment COMPARE = compare();

  /** The keeper whose thread this is. */
  private static final ThreadLocal<ArenaKeeper> CURRENT = new ThreadLocal<>();

  private final MemorySegment memory;
  private final CountDownLatch begun = new CountDownLatch(1);
  private final CountDownLatch end = new CountDownLatch(1);
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile @Nullable Throwable failure;

  private ArenaKeeper(MemorySegment memory) {
    this.memory = memory;
  }

  /** A keeper that has begun. */
  static ArenaKeeper of(MemorySegment memory) {
    ArenaKeeper keeper = new ArenaKeeper(Objects.requireNonNull(memory, "memory"));
    Thread thread = new Thread(null, keeper, "cuvette-arena", STACK_BYTES, false);
    thread.setDaemon(true);
    thread.start();
    await(keeper.begun);
    Throwable failed = keeper.failure;
    if (failed != null) {
      throw NativeAccess.unexpected(failed);
    }
    return keeper;
  }

  void letGo() {
    end.countDown();
    await(ended);
  }

  @Override
  public void run() {
    CURRENT.set(this);
    try {
      long _ = (long) SEARCH.invokeExact(memory, memory, 1L, 1L, COMPARE);
    } catch (Throwable e) { // what invokeExact declares
      failure = e;
    } finally {
      ended.countDown();
      begun.countDown();
    }
  }

  private static MemorySegment compare() {
    try {
      MethodHandle sleep =
          MethodHandles.lookup()
              .findStatic(ArenaKeeper.class, "sleep", MethodType.methodType(int.class));
      return NativeAccess.callback(
          MethodHandles.dropArguments(sleep, 0, long.class, long.class),
          FunctionDescriptor.of(Layouts.INT, Layouts.POINTER, Layouts.POINTER));
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** Called by C, where nothing may be thrown. */
  static int sleep() {
    try {
      ArenaKeeper keeper = CURRENT.get();
      keeper.begun.countDown();
      await(keeper.end);
    } catch (Throwable _) { // the arena is let go of
    }
    return 0;
  }

  /** Keeps an interrupt. */
  private static void await(CountDownLatch latch) {
    boolean interrupted = false;
    while (true) {
      try {
        latch.await();
        break;
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
