package io.cuvette;

/**
 * Which calls that are unsafe beside a capture the driver refuses while it goes on
 * (CUstreamCaptureMode). Calls of this library are safe beside captures of any mode, also those of
 * other libraries; the mode is about the calls of others.
 */
public enum CaptureMode {
  /** Those of all threads; the capture must end in the thread in which it began. */
  GLOBAL(0),

  /** Those of the thread that began the capture, in which it must end. */
  THREAD_LOCAL(1),

  /** None; the capture can end in another thread. */
  RELAXED(2);

  private final int code;

  CaptureMode(int code) {
    this.code = code;
  }

  /** {@return the number that the driver has for the mode (CUstreamCaptureMode)} */
  public int code() {
    return code;
  }
}
