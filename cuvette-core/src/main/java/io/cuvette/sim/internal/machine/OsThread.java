package io.cuvette.sim.internal.machine;

/**
 * The thread of the operating system that runs a call, which is what a driver knows: a virtual
 * thread has that of its carrier, another one perhaps at each call. Stateless.
 */
public final class OsThread {
  private OsThread() {}

  /** Something that is equal for calls of one such thread, and for no others. */
  public static Object current() {
    Thread thread = Thread.currentThread();
    if (!thread.isVirtual()) {
      return thread;
    }
    // The text of a virtual thread that runs ends with the name of its carrier.
    String text = thread.toString();
    int carrier = text.lastIndexOf('@');
    return carrier < 0 ? thread : text.substring(carrier);
  }
}
