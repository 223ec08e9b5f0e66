package io.cuvette.internal.devicepool;

/** How many streams may still be asked whether they are idle. For one thread. */
final class Asks {
  private int left;

  Asks(int most) {
    this.left = most;
  }

  int left() {
    return left;
  }

  /** Whether one more may be asked, who counts. */
  boolean mayAsk() {
    return left > 0 && left-- > 0;
  }
}
