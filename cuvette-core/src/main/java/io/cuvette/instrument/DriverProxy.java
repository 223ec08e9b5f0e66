package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Drivers whose calls all pass through one method, whichever part of the driver they belong to. One
 * object is the driver and each of its parts. Stateless.
 */
public final class DriverProxy {
  private static final Object[] NO_ARGUMENTS = {};

  /** What gives each part of a driver, by the interface of the part. */
  private static final Map<Class<?>, Method> PARTS =
      Arrays.stream(CudaDriver.class.getDeclaredMethods())
          .filter(method -> method.getReturnType().getSimpleName().endsWith("Calls"))
          .collect(Collectors.toUnmodifiableMap(Method::getReturnType, method -> method));

  private static final Class<?>[] INTERFACES =
      Stream.concat(Stream.of(CudaDriver.class), PARTS.keySet().stream()).toArray(Class<?>[]::new);

  private static final List<Method> METHODS =
      Arrays.stream(INTERFACES)
          .flatMap(type -> Arrays.stream(type.getDeclaredMethods()))
          .filter(method -> !Modifier.isStatic(method.getModifiers()) && !isPart(method))
          .toList();

  private static final Set<String> NAMES =
      METHODS.stream().map(Method::getName).collect(Collectors.toUnmodifiableSet());

  private DriverProxy() {}

  /** Receives the calls of a driver, {@code close} among them, and answers them. */
  @FunctionalInterface
  public interface Interceptor {
    /**
     * Answers a call.
     *
     * @param method the method of {@link CudaDriver} or of one of its parts
     * @param arguments the arguments of the call
     * @return the result; null for a call that has none
     * @throws Throwable what the caller gets
     */
    @Nullable Object intercept(Method method, Object[] arguments) throws Throwable;
  }

  /**
   * {@return a driver that passes everything but its identity to the interceptor: the calls of all
   * parts, its name, whether it is simulated, its listener, its text and its end}
   *
   * @param interceptor decides what becomes of each call
   */
  public static CudaDriver of(Interceptor interceptor) {
    Objects.requireNonNull(interceptor, "interceptor");
    return (CudaDriver)
        Proxy.newProxyInstance(
            CudaDriver.class.getClassLoader(),
            INTERFACES,
            (proxy, method, arguments) -> {
              if (isPart(method) || method.getName().equals("hashCode")) {
                return isPart(method) ? proxy : System.identityHashCode(proxy);
              }
              return method.getName().equals("equals")
                  ? isSame(proxy, arguments[0])
                  : interceptor.intercept(method, arguments == null ? NO_ARGUMENTS : arguments);
            });
  }

  /** Returns a driver called {@code decorator(name)} that passes its calls to the interceptor. */
  static CudaDriver of(CudaDriver delegate, String decorator, Interceptor interceptor) {
    String name = decorator + "(" + delegate.name() + ")";
    return of((method, arguments) ->
        switch (method.getName()) {
          case "name", "toString" -> name;
          case "isSimulated" -> delegate.isSimulated();
          case "blockListener" -> delegate.blockListener();
          default -> interceptor.intercept(method, arguments);
        });
  }

  /** {@return the methods of {@link CudaDriver} and of its parts, in no particular order} */
  public static List<Method> methods() {
    return METHODS;
  }

  /**
   * Checks that {@link CudaDriver} or one of its parts has a method of this name.
   *
   * @param argument what the exception calls the name
   * @param name the name, such as {@code memAlloc}
   * @return the name
   * @throws IllegalArgumentException if there is no such method
   */
  public static String requireName(String argument, String name) {
    Objects.requireNonNull(argument, "argument");
    Objects.requireNonNull(name, "name");
    if (!NAMES.contains(name)) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: a call of CudaDriver)".formatted(argument, name));
    }
    return name;
  }

  /**
   * {@return whether a method calls the driver, as those of its parts do; what {@link CudaDriver}
   * itself answers remains available after the end}
   *
   * @param method a method of {@link CudaDriver} or of one of its parts
   */
  public static boolean isCall(Method method) {
    Objects.requireNonNull(method, "method");
    return PARTS.containsKey(method.getDeclaringClass());
  }

  /** Returns whether a method of {@link CudaDriver} gives a part and calls no driver. */
  private static boolean isPart(Method method) {
    return method.getDeclaringClass() == CudaDriver.class
        && PARTS.containsKey(method.getReturnType());
  }

  @SuppressWarnings("ReferenceEquality") // a proxy is equal to itself alone
  private static boolean isSame(Object proxy, @Nullable Object other) {
    return proxy == other;
  }

  /**
   * Makes a call on the part of a driver that it belongs to.
   *
   * @param delegate the driver or part that calls are forwarded to
   * @param method a method of {@link CudaDriver} or of one of its parts
   * @param arguments the arguments of the call
   * @return the result; null if it has none
   * @throws Throwable what the driver throws
   */
  public static @Nullable Object forward(CudaDriver delegate, Method method, Object[] arguments)
      throws Throwable {
    Objects.requireNonNull(delegate, "delegate");
    Objects.requireNonNull(method, "method");
    Objects.requireNonNull(arguments, "arguments");
    try {
      Method part = PARTS.get(method.getDeclaringClass());
      return method.invoke(part == null ? delegate : part.invoke(delegate), arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause() == null ? e : e.getCause();
    }
  }
}
