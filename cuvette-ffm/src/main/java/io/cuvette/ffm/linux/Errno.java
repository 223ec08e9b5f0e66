package io.cuvette.ffm.linux;

import io.cuvette.ffm.link.NativeAccess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;

/** Numbers of errors of Linux that decide something here, and the exceptions made of them. */
public final class Errno {
  public static final int EINTR = 4;
  static final int ENOENT = 2;
  static final int ESRCH = 3;
  public static final int EBADF = 9;
  static final int EAGAIN = 11;
  static final int EINVAL = 22;
  static final int EPROTOTYPE = 91;
  static final int EADDRINUSE = 98;
  static final int ENOTCONN = 107;
  static final int ECONNABORTED = 103;
  static final int ECONNRESET = 104;
  static final int ECONNREFUSED = 111;

  private static final long LONGEST_TEXT = 256;

  private Errno() {}

  /** The text of the system for an error, and its number. */
  static String text(int errno) {
    String text = NativeAccess.memory(Libc.strerror(errno), LONGEST_TEXT).getString(0);
    return text + " (errno " + errno + ")";
  }

  /**
   * A failed call.
   *
   * @param call the call with its arguments, such as {@code fcntl(descriptor=7, F_GETFD)}
   */
  public static UncheckedIOException failure(int errno, String call) {
    String message = call + ": " + text(errno);
    return unchecked(
        errno == ECONNREFUSED ? new ConnectException(message) : new IOException(message));
  }

  /** The result of a call, which did not fail. */
  public static int require(int result, String call) {
    if (result < 0) {
      throw failure(-result, call);
    }
    return result;
  }

  /** A failure, without a second message around its own. */
  static UncheckedIOException unchecked(IOException failure) {
    return new UncheckedIOException(failure.getMessage(), failure);
  }
}
