package io.cuvette.internal.base;

/**
 * Reports failures of the user's code where no caller can be given them. The failure itself is the
 * user's code too: its text may throw. Stateless.
 */
public final class UserFailures {
  private UserFailures() {}

  /**
   * Passes a failure to the uncaught-exception handler of the current thread, as if it had ended
   * the thread. Never throws.
   */
  public static void uncaught(Throwable failure) {
    Thread thread = Thread.currentThread();
    try {
      thread.getUncaughtExceptionHandler().uncaughtException(thread, failure);
    } catch (Throwable _) { // as the JVM does with what a handler throws
    }
  }

  /** The text of a failure, or the name of its class if the text cannot be had. */
  public static String text(Throwable failure) {
    try {
      return failure.toString();
    } catch (Throwable e) { // the failure's own code
      return "%s, whose text threw %s"
          .formatted(failure.getClass().getName(), e.getClass().getName());
    }
  }
}
