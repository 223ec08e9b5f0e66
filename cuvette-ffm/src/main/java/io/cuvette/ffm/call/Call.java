package io.cuvette.ffm.call;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.FirstFailure;
import java.util.Locale;

/**
 * A call of the driver with its arguments, as messages show it, and the way to make it where a
 * lambda and its arguments cost too little to matter. Immutable.
 */
public final class Call {
  /** CUresult of a call that worked. */
  public static final int SUCCESS = 0;

  /** CUresult of an argument that is wrong. */
  public static final int INVALID_VALUE = 1;

  /** CUresult of a question about work that still runs. */
  public static final int NOT_READY = 600;

  /** Contexts are the process's, and lost until it ends. */
  private static final FirstFailure FIRST = new FirstFailure();

  private final String format;
  private final Object[] arguments;

  private Call(String format, Object... arguments) {
    this.format = format;
    this.arguments = arguments;
  }

  /** The driver's function, called with arguments that were computed before. */
  @FunctionalInterface
  public interface Function {
    /** Calls the function and returns its CUresult; writes results into the frame. */
    int invoke(CallFrame frame) throws Throwable;
  }

  /**
   * A call.
   *
   * @param format such as {@code cuMemAlloc(bytes=%d, device=%d)}; addresses and handles are {@code
   *     %#x}
   */
  public static Call of(String format, Object... arguments) {
    return new Call(format, arguments);
  }

  /**
   * Makes the call and ends its frame. The function comes first, so that the JVM has linked it
   * before the frame starts: in between nothing may wait ({@link CallFrame#enter}).
   *
   * @return the first 8 bytes of results; a shorter value is in the low bytes
   * @throws CudaException if the driver refuses
   */
  public long run(Function function, CallFrame frame) {
    int status;
    do {
      try {
        status = function.invoke(frame);
      } catch (Throwable e) { // what invokeExact declares
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    long result = frame.leave();
    if (status != SUCCESS) {
      throw failed(status);
    }
    return result;
  }

  /** The exception of this call. */
  @SuppressWarnings("AnnotateFormatMethod") // a dependency; each format is tried by a test
  public CudaException failed(int status) {
    String made = String.format(Locale.ROOT, format, arguments);
    String lost = FIRST.explain(CudaStatus.of(status), made);
    return lost.isEmpty()
        ? new CudaException(status, made)
        : new CudaException(CudaStatus.of(status), made, lost);
  }
}
