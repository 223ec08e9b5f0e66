package io.cuvette.ffm.part;

import io.cuvette.driver.CudaStatus;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A flag that C code raises for Java code once, by a function of the C library alone: a semaphore.
 * The driver can raise it on any of its threads and at any time, also while the JVM ends or after
 * it, when a Java function could not be called. So its memory is never freed, but used again once
 * it was raised. Thread-safe.
 */
final class Signal {
  /** The address of the C function {@code int (*)(sem_t*)}; 0 if the system lacks it. */
  static final long RAISE = NativeAccess.address("sem_post");

  private static final MethodHandle INIT =
      NativeAccess.function(
          "sem_init",
          FunctionDescriptor.of(Layouts.INT, Layouts.POINTER, Layouts.INT, Layouts.INT));
  private static final MethodHandle TAKE =
      NativeAccess.function("sem_trywait", FunctionDescriptor.of(Layouts.INT, Layouts.POINTER));

  /** Room for a sem_t of every C library. */
  private static final long BYTES = 64;

  private static final Queue<Long> FREE = new ConcurrentLinkedQueue<>();

  private final long address;

  /** Held by the one thread that looks: what it finds can be another signal's right after. */
  private final AtomicBoolean looking = new AtomicBoolean();

  private volatile boolean raised;

  private Signal(long address) {
    this.address = address;
  }

  /** A signal that was not raised. */
  static Signal take() {
    if (RAISE == 0) {
      throw Call.of("cuUserObjectCreate() without sem_post")
          .failed(CudaStatus.NOT_SUPPORTED.code());
    }
    Long used = FREE.poll();
    return new Signal(used != null ? used : made());
  }

  private static long made() {
    long address = Arena.global().allocate(BYTES, BYTES).address();
    try {
      int _ = (int) INIT.invokeExact(address, 0, 0); // fails for shared ones and large values
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
    return address;
  }

  long address() {
    return address;
  }

  /** Whether the function was called. */
  boolean isRaised() {
    if (!raised && looking.compareAndSet(false, true)) {
      try {
        if (!raised && tookOne()) {
          raised = true;
          FREE.add(address);
        }
      } finally {
        looking.set(false);
      }
    }
    return raised;
  }

  private boolean tookOne() {
    try {
      return (int) TAKE.invokeExact(address) == 0;
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** Makes a signal that the driver never got available again. */
  void unused() {
    FREE.add(address);
  }
}
