package io.cuvette.instrument;

import java.util.Objects;

/**
 * A driver call that a {@link SanitizerReport} is about: the call as the message, and the stack of
 * the caller. A thread that makes many calls of one kind takes the stack of few: the others have
 * that of one made shortly before. Immutable.
 */
public final class Site extends Throwable {
  private static final long serialVersionUID = 1L;

  /** The call with its arguments. */
  private final String call;

  /** Whether the stack is that of this call. */
  private final boolean isOwnStack;

  /**
   * Creates a site.
   *
   * @param call the driver call with its arguments
   * @param stack the stack of the caller, the innermost frame first; it is copied
   * @param isOwnStack whether the stack is that of this call; else of one like it made before
   */
  public Site(String call, StackTraceElement[] stack, boolean isOwnStack) {
    this.call = Objects.requireNonNull(call, "call");
    setStackTrace(Objects.requireNonNull(stack, "stack"));
    this.isOwnStack = isOwnStack;
  }

  /** Leaves out the stack of the thread that makes a report. */
  @Override
  public Throwable fillInStackTrace() {
    return this;
  }

  /**
   * Returns the driver call.
   *
   * @return the call with its arguments, such as {@code memAlloc(device=0, bytes=512)}
   */
  public String call() {
    return call;
  }

  /** Returns the driver call. */
  @Override
  public String getMessage() {
    return call;
  }

  /** Returns the call, and whether the stack is that of another one. */
  @Override
  public String toString() {
    return super.toString() + (isOwnStack ? "" : ", called as one like it shortly before");
  }
}
