package io.cuvette.ffm;

import io.cuvette.driver.CudaException;

/** Makes the exceptions of failed calls. Thread-safe. */
final class Failure {
  private Failure() {}

  /**
   * A failed call.
   *
   * @param arguments names and values in turn
   */
  static CudaException of(int status, String function, Object... arguments) {
    return new CudaException(status, call(function, arguments));
  }

  private static String call(String function, Object... arguments) {
    StringBuilder text = new StringBuilder(function).append('(');
    for (int i = 0; i < arguments.length; i += 2) {
      text.append(i == 0 ? "" : ", ").append(arguments[i]).append('=').append(arguments[i + 1]);
    }
    return text.append(')').toString();
  }

  /** An address or a handle as people compare it. */
  static String hex(long pointer) {
    return "0x" + Long.toHexString(pointer);
  }
}
