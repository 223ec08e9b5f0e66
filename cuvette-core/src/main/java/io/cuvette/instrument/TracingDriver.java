package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.internal.report.CallText;
import io.cuvette.internal.base.UserFailures;
import java.lang.reflect.Method;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Reports every call of a driver to a consumer, {@code close} among them, after it returned or
 * threw. Thread-safe; the consumer runs on the calling threads, many at a time.
 */
public final class TracingDriver {
  private final CudaDriver target;
  private final Consumer<? super TracedCall> consumer;
  private final LongSupplier clock;
  private final AtomicLong sequence = new AtomicLong();

  private TracingDriver(
      CudaDriver target, Consumer<? super TracedCall> consumer, LongSupplier clock) {
    this.target = Objects.requireNonNull(target, "target");
    this.consumer = Objects.requireNonNull(consumer, "consumer");
    this.clock = Objects.requireNonNull(clock, "clock");
  }

  /**
   * Creates a driver called {@code tracing(NAME)} whose calls the consumer receives.
   *
   * @param target the driver whose calls are traced
   * @param consumer what it throws goes to the uncaught-exception handler of the calling thread: a
   *     call that worked must not look as if it had failed
   * @return the driver, which closes the target
   */
  public static CudaDriver of(CudaDriver target, Consumer<? super TracedCall> consumer) {
    return of(target, consumer, System::nanoTime);
  }

  /**
   * Creates a driver called {@code tracing(NAME)} whose calls the consumer receives, with another
   * clock.
   *
   * @param target the driver whose calls are traced
   * @param consumer receives each call; what it throws goes to the uncaught-exception handler
   * @param clock the time in nanoseconds
   * @return the driver, which closes the target
   */
  public static CudaDriver of(
      CudaDriver target, Consumer<? super TracedCall> consumer, LongSupplier clock) {
    return DriverProxy.of(target, "tracing", new TracingDriver(target, consumer, clock)::intercept);
  }

  private @Nullable Object intercept(Method method, Object[] arguments) throws Throwable {
    long number = sequence.incrementAndGet();
    String call = CallText.of(method, arguments);
    long start = clock.getAsLong();
    try {
      Object result = DriverProxy.forward(target, method, arguments);
      boolean isVoid = method.getReturnType() == void.class;
      report(number, call, isVoid ? "void" : CallText.of(result), null, start);
      return result;
    } catch (RuntimeException | Error e) {
      report(number, call, null, e, start);
      throw e;
    }
  }

  private void report(
      long number,
      String call,
      @Nullable String result,
      @Nullable Throwable error,
      long startNanos) {
    long elapsedNanos = clock.getAsLong() - startNanos;
    Thread thread = Thread.currentThread();
    String name = thread.getName().isEmpty() ? "#" + thread.threadId() : thread.getName();
    try {
      consumer.accept(new TracedCall(number, name, call, result, error, startNanos, elapsedNanos));
    } catch (RuntimeException | Error e) {
      UserFailures.uncaught(e);
    }
  }
}
