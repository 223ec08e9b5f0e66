package io.cuvette.internal.kernel;

import java.lang.reflect.Method;

/** Holds types of Java against the parameters of kernels. Stateless. */
public final class ParameterTypes {
  private ParameterTypes() {}

  /**
   * Checks a parameter of a method.
   *
   * @param declared its type
   * @param passed the type it is passed as
   * @param bytes the size of the kernel's
   */
  public static void check(
      Method method, int index, Class<?> declared, Class<?> passed, long bytes) {
    long size = ArgumentValues.sizeOf(passed);
    if (size != 0 && size != bytes) {
      throw new IllegalArgumentException(
          "%s: argument %d: %s (expected: %s)"
              .formatted(
                  method, index, declared.getTypeName(), ArgumentValues.expected(bytes, null)));
    }
  }
}
