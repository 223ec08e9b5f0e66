package io.cuvette;

import io.cuvette.driver.KernelParameter;
import io.cuvette.internal.kernel.ParameterTypes;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Makes functional interfaces launch kernels. Stateless. */
final class BoundKernel {
  /** The stream and the configuration. */
  private static final int LEADING = 2;

  private BoundKernel() {}

  static <T> T of(CudaKernel kernel, Class<T> type) {
    Method method = method(type);
    check(kernel, method);
    checkDefaults(type);
    InvocationHandler handler =
        (proxy, called, given) -> {
          @Nullable Object[] arguments = given == null ? new Object[0] : given;
          if (called.equals(method) || called.isBridge()) {
            CudaStream stream = (CudaStream) Objects.requireNonNull(arguments[0], "stream");
            LaunchConfig config = (LaunchConfig) Objects.requireNonNull(arguments[1], "config");
            stream.launch(kernel, config, Arrays.copyOfRange(arguments, LEADING, arguments.length));
            return null;
          }
          return called.isDefault()
              ? InvocationHandler.invokeDefault(proxy, called, arguments)
              : ofObject(proxy, called, arguments, kernel);
        };
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
  }

  @SuppressWarnings("ReferenceEquality") // each is equal to itself alone
  private static Object ofObject(
      Object proxy, Method called, @Nullable Object[] arguments, CudaKernel kernel) {
    return switch (called.getName()) {
      case "equals" -> proxy == arguments[0];
      case "hashCode" -> System.identityHashCode(proxy);
      default -> kernel.toString();
    };
  }

  private static Method method(Class<?> type) {
    List<Method> methods =
        type.isInterface() && !type.isSealed()
            ? Arrays.stream(type.getMethods())
                .filter(method -> Modifier.isAbstract(method.getModifiers()))
                .filter(method -> !isOfObject(method))
                .toList()
            : List.of();
    if (methods.size() != 1 || methods.getFirst().getReturnType() != void.class) {
      throw new IllegalArgumentException(
          "%s: (expected: an interface with one abstract method, which returns nothing, and not sealed)"
              .formatted(type.getTypeName()));
    }
    return methods.getFirst();
  }

  /** Methods with a body can be called by their interface alone if others may see that. */
  private static void checkDefaults(Class<?> type) {
    boolean visible =
        Modifier.isPublic(type.getModifiers())
            && type.getModule().isExported(type.getPackageName(), BoundKernel.class.getModule());
    if (!visible && Arrays.stream(type.getMethods()).anyMatch(BoundKernel::hasBody)) {
      throw new IllegalArgumentException(
          "%s: has default methods (expected: none, or a public interface of an exported package)"
              .formatted(type.getTypeName()));
    }
  }

  /** Whether somebody wrote a body; the compiler's own forward to the abstract method. */
  private static boolean hasBody(Method method) {
    return method.isDefault() && !method.isBridge();
  }

  private static boolean isOfObject(Method method) {
    try {
      Object.class.getMethod(method.getName(), method.getParameterTypes());
      return true;
    } catch (NoSuchMethodException e) {
      return false;
    }
  }

  private static void check(CudaKernel kernel, Method method) {
    Class<?>[] types = method.getParameterTypes();
    if (types.length < LEADING || types[0] != CudaStream.class || types[1] != LaunchConfig.class) {
      throw new IllegalArgumentException(
          "%s: (expected: CudaStream and LaunchConfig as its first two parameters)"
              .formatted(method));
    }
    List<KernelParameter> places = kernel.core().places();
    if (places != null && places.size() != types.length - LEADING) {
      throw new IllegalArgumentException(
          "%s: %d parameters behind the configuration (expected: %d, as %s has)"
              .formatted(method, types.length - LEADING, places.size(), kernel));
    }
    for (int i = LEADING; i < types.length; i++) {
      Class<?> type = Buffer.class.isAssignableFrom(types[i]) ? long.class : types[i];
      if (!type.isPrimitive() && type != MemorySegment.class) {
        throw new IllegalArgumentException(
            "%s: %s (expected: a Buffer, a primitive, or a MemorySegment)"
                .formatted(method, types[i].getTypeName()));
      }
      if (places != null) {
        ParameterTypes.check(method, i - LEADING, types[i], type, places.get(i - LEADING).size());
      }
    }
  }
}
