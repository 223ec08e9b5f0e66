package io.cuvette.ffm.part;

import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Java functions that the driver runs. All share one C function, which is never freed because the
 * driver may run it at any time; it gets the number of the Java function to run. Here are those
 * that run once; graphs have {@link GraphFunctions}. Thread-safe.
 */
public final class HostFunctions {
  private static final System.Logger LOGGER = System.getLogger(HostFunctions.class.getName());
  private static final Map<Long, HostFunction> WAITING = new ConcurrentHashMap<>();
  private static final AtomicLong NUMBERS = new AtomicLong();

  /** The address of the C function {@code void (*)(void* number)}. */
  public static final long ENTRY = entry().address();

  private record HostFunction(Entry driver, Runnable body) {}

  private HostFunctions() {}

  private static MemorySegment entry() {
    try {
      return NativeAccess.callback(
          MethodHandles.lookup()
              .findStatic(
                  HostFunctions.class, "run", MethodType.methodType(void.class, long.class)),
          FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** A number that no function has. */
  static long next() {
    return NUMBERS.incrementAndGet();
  }

  /** Gives a function a number to launch it with. */
  static long add(Entry driver, Runnable body) {
    long number = next();
    WAITING.put(number, new HostFunction(driver, body));
    return number;
  }

  /** Forgets a function that was not launched. */
  static void remove(long number) {
    WAITING.remove(number);
  }

  /** Forgets the functions of a driver. After an error of a device they would never run. */
  public static void forget(Entry driver) {
    WAITING.values().removeIf(function -> function.driver == driver);
    GraphFunctions.forget(driver);
  }

  @SuppressWarnings("unused") // called by the driver
  private static void run(long number) {
    try {
      HostFunction function = WAITING.remove(number);
      if (function != null) {
        function.body.run();
      } else {
        GraphFunctions.run(number);
      }
    } catch (Throwable e) { // what leaves a function that C called ends the JVM
      report(e);
    }
  }

  /** Logs a failure. Its text and the log's handlers are code of the user, which may fail too. */
  private static void report(Throwable failure) {
    try {
      LOGGER.log(System.Logger.Level.ERROR, "a host function threw", failure);
    } catch (Throwable _) { // as above
      reportClass(failure.getClass());
    }
  }

  private static void reportClass(Class<?> failure) {
    try {
      LOGGER.log(
          System.Logger.Level.ERROR,
          "a host function threw {0}, which cannot be logged",
          failure.getName());
    } catch (Throwable _) { // as above: nothing is left to try
    }
  }
}
