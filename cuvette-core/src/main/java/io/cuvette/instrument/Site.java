package io.cuvette.instrument;

import java.util.StringJoiner;

/**
 * Where something happened: a driver call as the message, and the stack of the caller. Immutable.
 */
public final class Site extends Throwable {
  private static final long serialVersionUID = 1L;

  Site(String call) {
    super(call);
  }

  /** A call of a method with alternating names and values of arguments. */
  static Site of(String method, Object... arguments) {
    StringJoiner text = new StringJoiner(", ", method + "(", ")");
    for (int i = 0; i < arguments.length; i += 2) {
      text.add(arguments[i] + "=" + DriverProxy.text(arguments[i + 1]));
    }
    return new Site(text.toString());
  }

  /** The driver call with its arguments. */
  public String call() {
    return String.valueOf(getMessage());
  }
}
