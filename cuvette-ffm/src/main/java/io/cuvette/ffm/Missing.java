package io.cuvette.ffm;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Stands in for functions that the driver does not have: calling one says so. Thread-safe. */
final class Missing {
  private Missing() {}

  /** A function of a type that always throws. */
  static MethodHandle function(String name, int version, MethodType type) {
    try {
      MethodHandle fail =
          MethodHandles.lookup()
              .findStatic(
                  Missing.class, "call", MethodType.methodType(int.class, String.class, int.class));
      return MethodHandles.dropArguments(
          MethodHandles.insertArguments(fail, 0, name, version), 0, type.parameterList());
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** A function of the C library that always throws. */
  static MethodHandle systemFunction(String name, MethodType type) {
    MethodHandle fail =
        MethodHandles.throwException(type.returnType(), UnsupportedOperationException.class);
    try {
      MethodHandle reason =
          MethodHandles.lookup()
              .findStatic(
                  Missing.class,
                  "unsupported",
                  MethodType.methodType(UnsupportedOperationException.class, String.class));
      return MethodHandles.dropArguments(
          MethodHandles.collectArguments(fail, 0, MethodHandles.insertArguments(reason, 0, name)),
          0,
          type.parameterList());
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** What is thrown by the call of a function the driver does not have. */
  static CudaException exception(String name, int version) {
    return exception(CudaStatus.CALL_REQUIRES_NEWER_DRIVER, name, version);
  }

  /** What is thrown at the start if the driver lacks a function that nothing works without. */
  static CudaException required(String name, int version) {
    return exception(CudaStatus.SHARED_OBJECT_SYMBOL_NOT_FOUND, name, version);
  }

  private static CudaException exception(CudaStatus status, String name, int version) {
    return new CudaException(
        status,
        "cuGetProcAddress(symbol=%s, version=%d)".formatted(name, version),
        "the driver does not have %s as of CUDA %s: install a newer NVIDIA driver"
            .formatted(name, Versions.text(version)));
  }

  @SuppressWarnings("unused") // through a method handle
  private static int call(String name, int version) {
    throw exception(name, version);
  }

  @SuppressWarnings("unused") // through a method handle
  private static UnsupportedOperationException unsupported(String name) {
    return new UnsupportedOperationException("the C library of this system has no " + name);
  }
}
