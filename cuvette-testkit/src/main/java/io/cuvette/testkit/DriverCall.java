package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A call on its way to a driver, as a {@link ScriptedDriver} sees it. Immutable. */
public final class DriverCall {
  private final CudaDriver below;
  private final Method method;
  private final Object[] arguments;

  DriverCall(CudaDriver below, Method method, Object[] arguments) {
    this.below = below;
    this.method = method;
    this.arguments = arguments;
  }

  /** {@return the name of the method} */
  public String name() {
    return method.getName();
  }

  /** {@return the driver below, for calls of other names} */
  public CudaDriver below() {
    return below;
  }

  /**
   * {@return a number by the name of its parameter, such as {@code device}}
   *
   * @param parameter the name of the parameter
   * @throws IllegalArgumentException if the method has no such number
   */
  public long number(String parameter) {
    return argument(parameter, Number.class).longValue();
  }

  /**
   * {@return an argument by the name of its parameter}
   *
   * @param <T> the type of the argument
   * @param parameter the name of the parameter
   * @param type the type of the argument
   * @throws IllegalArgumentException if the method has no such parameter of this type
   */
  public <T> T argument(String parameter, Class<T> type) {
    Objects.requireNonNull(parameter, "parameter");
    Objects.requireNonNull(type, "type");
    Parameter[] parameters = method.getParameters();
    for (int i = 0; i < parameters.length; i++) {
      if (parameters[i].getName().equals(parameter) && type.isInstance(arguments[i])) {
        return type.cast(arguments[i]);
      }
    }
    throw new IllegalArgumentException(
        "parameter: %s '%s' (expected: one of %s)"
            .formatted(type.getSimpleName(), parameter, method));
  }

  /**
   * Makes the call.
   *
   * @return its result; null if it has none
   * @throws Throwable what it fails with
   */
  public @Nullable Object proceed() throws Throwable {
    return DriverProxy.forward(below, method, arguments);
  }
}
