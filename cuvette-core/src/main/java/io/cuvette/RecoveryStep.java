package io.cuvette;

/** What a pool tries, in this order, before it gives up; it searches again after each. */
public enum RecoveryStep {
  /** The limit alone forbids the size. */
  LIMIT("the limit"),
  /** The driver was asked, without a pool. */
  DRIVER("the driver"),
  /** Its own cached blocks. */
  OWN_BLOCKS("own cached blocks"),
  /** Cached blocks of other streams whose work is done. */
  OTHER_STREAMS("cached blocks of idle streams"),
  /** More memory from the driver. */
  GROW("growing"),
  /** Giving cached memory back to the driver, also that of the other pools. */
  RELEASE("releasing cached memory"),
  /** Asking the pressure listeners. */
  PRESSURE("pressure listeners"),
  /** Waiting for the streams that still use cached memory. */
  WAIT("waiting for other streams"),
  /** Looking for forgotten buffers with the garbage collector. */
  RECLAIM("reclaiming forgotten buffers");

  private final String text;

  RecoveryStep(String text) {
    this.text = text;
  }

  String text() {
    return text;
  }
}
