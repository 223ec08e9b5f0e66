package io.cuvette.internal.base;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;

/**
 * A step that is done once, whoever calls it: the user who closes something, and the Cuda at its
 * end. If it failed, the next one tries again. Thread-safe.
 */
public final class Once {
  private final AtomicBoolean done = new AtomicBoolean();

  public void run(Runnable step) {
    run(step, _ -> false);
  }

  /** The same for one call of the driver that frees: it is not made again if it may have worked. */
  public void free(Runnable call) {
    run(call, Once::mayBeDone);
  }

  /** The same for code of the user, which is not called again: how far it came is not known. */
  public void call(Runnable code) {
    run(code, _ -> true);
  }

  private void run(Runnable step, Predicate<Throwable> isDone) {
    if (done.compareAndSet(false, true)) {
      try {
        step.run();
      } catch (RuntimeException | Error e) {
        done.set(isDone.test(e));
        throw e;
      }
    }
  }

  /** Whether it needs not to be tried again. */
  public boolean isDone() {
    return done.get();
  }

  /** Makes a call that frees, and notes that it is not to be made again. */
  public static void free(Runnable call, Runnable note) {
    try {
      call.run();
    } catch (RuntimeException e) {
      if (mayBeDone(e)) {
        note.run();
      }
      throw e;
    }
    note.run();
  }

  /**
   * Whether a call of the driver that failed so may have done its work: it reports what earlier
   * work of the device failed with. Nothing can be freed there any more, and what was freed is
   * another's by now if the error was not the device's last word. Or others did it: memory of the
   * program that they unregistered may be registered anew.
   */
  public static boolean mayBeDone(Throwable e) {
    return e instanceof CudaException failure
        && (failure.status().losesContext()
            || failure.status() == CudaStatus.HOST_MEMORY_NOT_REGISTERED);
  }
}
