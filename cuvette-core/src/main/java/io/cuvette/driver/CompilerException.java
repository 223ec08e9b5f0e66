package io.cuvette.driver;

import java.util.Objects;

/**
 * A compiler or a linker refused what it was given. The message has the call with its arguments,
 * the name and number of the status, and the beginning of the log, which {@link #log} has whole.
 * Immutable.
 */
public class CompilerException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final int SHOWN = 4_000;

  /** The status. */
  private final int code;

  /** The call with its arguments. */
  private final String call;

  /** The name of the status. */
  private final String status;

  /** The log. */
  private final String log;

  /**
   * A failed call.
   *
   * @param call the call with its arguments, such as {@code nvrtcCompileProgram(options=[])}
   * @param code the status, an nvrtcResult or nvJitLinkResult; 0 if the library reported none
   * @param status the name of the status, or what is wrong
   * @param log what the library reports about it; may be empty
   */
  public CompilerException(String call, int code, String status, String log) {
    super(message(call, code, status, Objects.requireNonNull(log, "log")));
    this.code = code;
    this.call = call;
    this.status = status;
    this.log = log;
  }

  private static String message(String call, int code, String status, String log) {
    Objects.requireNonNull(call, "call");
    Objects.requireNonNull(status, "status");
    String number = code == 0 ? "" : " (" + code + ")";
    String text = log.strip();
    String shown =
        text.length() <= SHOWN
            ? text
            : text.substring(0, SHOWN)
                + "\n... (%d more characters in log())".formatted(text.length() - SHOWN);
    return call + ": " + status + number + (shown.isEmpty() ? "" : "\n" + shown);
  }

  /**
   * {@return this failure with another log, and this one as its cause}
   *
   * @param text the log
   */
  public CompilerException withLog(String text) {
    Objects.requireNonNull(text, "text");
    CompilerException explained = new CompilerException(call, code, status, text);
    explained.initCause(this);
    return explained;
  }

  /** {@return the status: an nvrtcResult, an nvJitLinkResult, or 0 if there was none} */
  public int code() {
    return code;
  }

  /** {@return the name of the status, such as {@code NVRTC_ERROR_COMPILATION}} */
  public String status() {
    return status;
  }

  /** {@return the call with its arguments} */
  public String call() {
    return call;
  }

  /** {@return all that the library reports about it; empty if it reports nothing} */
  public String log() {
    return log;
  }
}
