package io.cuvette.driver;

/**
 * The capture that a stream takes part in. Immutable.
 *
 * @param status CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated
 * @param id what names the capture in this process for ever; 0 unless it is active
 * @param graph the graph that is being captured, which is not the caller's; 0 unless it is active
 */
public record CaptureInfo(int status, long id, long graph) {

  private static final int ACTIVE = 1;

  /**
   * {@return the answer of the driver about a stream; id and graph are 0 unless the capture is
   * active}
   */
  public static CaptureInfo of(int status, long id, long graph) {
    return status == ACTIVE ? new CaptureInfo(status, id, graph) : new CaptureInfo(status, 0, 0);
  }

  /** {@return whether the stream takes part in a capture, valid or not} */
  public boolean isCapturing() {
    return status != 0;
  }

  /** {@return whether the capture is going on and valid} */
  public boolean isActive() {
    return status == ACTIVE;
  }
}
