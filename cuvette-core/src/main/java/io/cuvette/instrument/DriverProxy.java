package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/** Drivers whose calls all pass through one method. Stateless. */
final class DriverProxy {
  private static final Object[] NO_ARGUMENTS = {};

  private DriverProxy() {}

  /** Sees the calls of a driver, {@code close} among them, and decides what becomes of them. */
  interface Interceptor {
    @Nullable Object intercept(Method method, Object[] arguments) throws Throwable;
  }

  /** A driver called {@code decorator(name)} that asks the interceptor instead of the delegate. */
  static CudaDriver of(CudaDriver delegate, String decorator, Interceptor interceptor) {
    String name = decorator + "(" + delegate.name() + ")";
    return (CudaDriver)
        Proxy.newProxyInstance(
            CudaDriver.class.getClassLoader(),
            new Class<?>[] {CudaDriver.class},
            (proxy, method, arguments) ->
                switch (method.getName()) {
                  case "name", "toString" -> name;
                  case "isSimulated" -> delegate.isSimulated();
                  case "blockListener" -> delegate.blockListener();
                  case "hashCode" -> System.identityHashCode(proxy);
                  case "equals" -> isSame(proxy, arguments[0]);
                  default ->
                      interceptor.intercept(method, arguments == null ? NO_ARGUMENTS : arguments);
                });
  }

  @SuppressWarnings("ReferenceEquality") // a proxy is equal to itself alone
  private static boolean isSame(Object proxy, @Nullable Object other) {
    return proxy == other;
  }

  /** Calls the delegate and throws what it throws. */
  static @Nullable Object forward(CudaDriver delegate, Method method, Object[] arguments)
      throws Throwable {
    try {
      return method.invoke(delegate, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause() == null ? e : e.getCause();
    }
  }

  /** A call as text, such as {@code memAlloc(device=0, bytes=512)}. */
  static String text(Method method, Object[] arguments) {
    StringJoiner text = new StringJoiner(", ", method.getName() + "(", ")");
    Parameter[] parameters = method.getParameters();
    for (int i = 0; i < arguments.length; i++) {
      String name = parameters[i].isNamePresent() ? parameters[i].getName() + "=" : "";
      text.add(name + text(arguments[i]));
    }
    return text.toString();
  }

  /** A value as text: addresses and handles, which are large, in hexadecimal. */
  static String text(@Nullable Object value) {
    return switch (value) {
      case Long number when number < 0 || number >= 1L << 32 -> "0x" + Long.toHexString(number);
      case MemorySegment segment ->
          "0x%x[%d bytes]".formatted(segment.address(), segment.byteSize());
      case int[] numbers -> Arrays.toString(numbers);
      case byte[] bytes -> bytes.length + " bytes";
      case null, default -> String.valueOf(value);
    };
  }
}
