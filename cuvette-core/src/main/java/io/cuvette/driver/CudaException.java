package io.cuvette.driver;

import java.util.Objects;

/**
 * A call of the CUDA driver failed. The message has the call with its arguments and the name,
 * number and meaning of the status. Immutable.
 */
public class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The CUresult. */
  private final int code;

  /** The call with its arguments. */
  private final String call;

  /**
   * A failed call.
   *
   * @param code the CUresult, also one this library does not know
   * @param call the call with its arguments, such as {@code cuMemAlloc(bytes=512, device=0)}
   */
  public CudaException(int code, String call) {
    this(code, Objects.requireNonNull(call, "call"), CudaStatus.describe(code));
  }

  /**
   * Creates the exception of a failed call with a text of its own, which should name a remedy.
   *
   * @param status the status
   * @param call the call with its arguments
   * @param text what to do about it
   */
  public CudaException(CudaStatus status, String call, String text) {
    this(
        Objects.requireNonNull(status, "status").code(),
        Objects.requireNonNull(call, "call"),
        CudaStatus.describe(status.code()) + ": " + Objects.requireNonNull(text, "text"));
  }

  private CudaException(int code, String call, String description) {
    super(call + ": " + description);
    this.code = code;
    this.call = call;
  }

  /**
   * {@return this failure with a text that says what to do, and this one as its cause}
   *
   * @param text what to do about it
   */
  public CudaException explained(String text) {
    Objects.requireNonNull(text, "text");
    CudaException explained = new CudaException(code, call, description() + ": " + text);
    explained.initCause(this);
    return explained;
  }

  private String description() {
    return Objects.requireNonNull(getMessage()).substring(call.length() + 2);
  }

  /** {@return the status, {@link CudaStatus#UNKNOWN} for a number this library does not know} */
  public CudaStatus status() {
    return CudaStatus.of(code);
  }

  /** {@return the number of the status (CUresult)} */
  public int code() {
    return code;
  }

  /** {@return the call with its arguments} */
  public String call() {
    return call;
  }
}
