package io.cuvette.sim;

import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.List;

/** The captures of a driver that go on, and what they forbid. Guarded by the driver's lock. */
final class SimCaptures {
  private final List<SimCapture> open = new ArrayList<>();

  void begin(SimStream stream, int mode) {
    if (mode < SimCapture.GLOBAL || mode > SimCapture.RELAXED) {
      throw SimRefusal.invalidValue("mode: %d (expected: 0 to 2)".formatted(mode));
    }
    if (stream.isLegacy()) {
      throw new SimRefusal(
          CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "the legacy default stream cannot be captured");
    }
    if (stream.capture != null) {
      throw new SimRefusal(CudaStatus.ILLEGAL_STATE, "the stream is captured already");
    }
    open.add(new SimCapture(stream, mode));
  }

  SimGraph end(SimStream stream) {
    CaptureBranch branch = stream.capture;
    if (branch == null) {
      throw new SimRefusal(CudaStatus.ILLEGAL_STATE, "the stream is not captured");
    }
    try {
      return branch.capture.end(stream);
    } finally {
      open.removeIf(capture -> capture.origin.capture == null);
    }
  }

  void destroyed(SimStream stream) {
    CaptureBranch branch = stream.capture;
    if (branch != null) {
      branch.capture.destroyed(stream);
      open.removeIf(capture -> capture.origin.capture == null);
    }
  }

  /** For calls that a capture forbids to its thread, or to all, unless it is relaxed. */
  void checkUnsafe() {
    for (SimCapture capture : open) {
      if (capture.forbidsUnsafeCalls()) {
        throw capture.invalidate(
            CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "a capture that is not relaxed goes on");
      }
    }
  }

  /** For calls that wait for or ask about a stream. */
  void checkQuery(SimStream stream) {
    CaptureBranch branch = stream.capture;
    if (branch != null) {
      throw branch.capture.invalidate(
          CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "the stream is captured");
    }
    checkLegacy(stream);
    checkUnsafe();
  }

  /** For calls on a stream: the legacy stream would wait for blocking streams that are captured. */
  void checkLegacy(SimStream stream) {
    if (stream.isLegacy()) {
      for (SimCapture capture : open) {
        if (capture.blocksLegacy(stream.device)) {
          throw capture.invalidate(
              CudaStatus.STREAM_CAPTURE_IMPLICIT,
              "the legacy default stream waits for a stream that is captured");
        }
      }
    }
  }

  /** For the question alone whether a stream is captured, which spoils nothing. */
  void checkAsked(SimStream stream) {
    if (stream.isLegacy() && open.stream().anyMatch(c -> c.blocksLegacy(stream.device))) {
      throw new SimRefusal(
          CudaStatus.STREAM_CAPTURE_IMPLICIT,
          "the legacy default stream waits for a stream that is captured");
    }
  }

  /** For calls that wait for a device. */
  void checkDevice(SimDevice device) {
    for (SimCapture capture : open) {
      if (capture.touches(device)) {
        throw capture.invalidate(
            CudaStatus.STREAM_CAPTURE_UNSUPPORTED, "a stream of the device is captured");
      }
    }
    checkUnsafe();
  }
}
