package io.cuvette.internal.graph;

import io.cuvette.CaptureMode;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.DriverStream;
import org.jspecify.annotations.Nullable;

/** Begins and ends the captures of streams. Stateless. */
public final class GraphCapture {
  private GraphCapture() {}

  /**
   * Starts to capture a stream (cuStreamBeginCapture).
   *
   * @param memory what allocations take from; null for memory of its own
   */
  public static void begin(OpenStream stream, CaptureMode mode, @Nullable GraphArena memory) {
    DriverStream state = stream.state;
    checkMode(mode);
    CudaDriver driver = stream.hold();
    try {
      checkCanBegin(state, memory);
      state.capturing.expose();
      state.capturing.beginAlone(() -> begun(driver, state, mode, memory));
    } finally {
      stream.unhold();
    }
  }

  private static boolean begun(
      CudaDriver driver, DriverStream state, CaptureMode mode, @Nullable GraphArena memory) {
    state.capturing.check("beginCapture", " already (expected: endCapture before)");
    state.capturing.change();
    driver.captures().streamBeginCapture(state.device.id(), state.handle, mode.code());
    try {
      state.capturing.own.begun(
          state
              .streams
              .captures()
              .begun(state.device.id(), state.handle, memory == null ? null : memory.captures()));
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, () -> driver.graphs().graphDestroy(streamEndCapture(driver, state)));
      throw e;
    }
    state.capturing.changed();
    return true;
  }

  /** A carrier of virtual threads may change before the end, which must be in the same one. */
  private static void checkMode(CaptureMode mode) {
    if (mode != CaptureMode.RELAXED && Thread.currentThread().isVirtual()) {
      throw new IllegalStateException(
          "beginCapture: mode %s on a virtual thread (expected: RELAXED, or a platform thread)"
              .formatted(mode));
    }
  }

  private static void checkCanBegin(DriverStream state, @Nullable GraphArena memory) {
    if (state.isLegacy()) {
      throw new IllegalStateException(
          "beginCapture: the %s cannot be captured (expected: another stream of the device)"
              .formatted(state));
    }
    if (memory != null && memory.device() != state.device) {
      throw new IllegalArgumentException(
          "beginCapture: memory of %s (expected: of %s)".formatted(memory.device(), state.device));
    }
  }

  /** Ends the capture that began in a stream (cuStreamEndCapture). */
  public static OpenGraph end(OpenStream stream) {
    DriverStream state = stream.state;
    CudaDriver driver;
    try {
      driver = stream.hold();
    } catch (IllegalStateException e) {
      Failures.runAfter(e, () -> state.streams.endLeft(state));
      throw e;
    }
    try {
      state.session.leaks().drain();
      return state.capturing.endAlone(() -> end(driver, state));
    } finally {
      stream.unhold();
    }
  }

  private static OpenGraph end(CudaDriver driver, DriverStream state) {
    CaptureInfo info = driver.captures().streamGetCaptureInfo(state.device.id(), state.handle);
    checkEnds(state, info);
    state.capturing.change();
    Capture own = state.capturing.own.taken(info);
    Retained retained = new Retained();
    GraphArena memory = null;
    if (own != null) {
      retained.take(own);
      memory = GraphArena.of(own.memory);
    }
    try {
      OpenGraph graph = OpenGraph.make(state.device, memory, retained, () -> ended(driver, state));
      if (own != null) {
        own.ended();
      }
      state.capturing.changed();
      return graph;
    } catch (RuntimeException | Error e) {
      notEnded(state, own, e);
      throw e;
    }
  }

  /** There is no graph, and perhaps the capture goes on, for another thread to end. */
  private static void notEnded(DriverStream state, @Nullable Capture own, Throwable failure) {
    if (own != null) {
      state.capturing.own.begun(
          own); // its stream ends it, if nobody can say now whether it goes on
      Failures.runAfter(
          failure,
          () -> {
            if (!state.capturing.goesOn()) {
              state.capturing.own.over();
            }
          });
    }
  }

  /** Ends a capture whose body failed, and gives its graph up. */
  public static void giveUp(OpenStream stream, Throwable failure) {
    DriverStream state = stream.state;
    if (!state.session.isClosed()) { // which has ended it
      Failures.runAfter(
          failure,
          () -> {
            if (state.isClosing()) {
              state.streams.endLeft(state);
            } else {
              giveUp(state);
            }
          });
    }
  }

  /** Also if the body has closed one of several objects that stand for the stream. */
  private static void giveUp(DriverStream stream) {
    CudaDriver _ = stream.hold();
    try {
      if (!stream.capturing.end()) {
        throw new IllegalStateException(
            "capture: %s goes on in another capture or thread, which its body left it to"
                .formatted(stream));
      }
    } finally {
      stream.unhold();
    }
  }

  private static void checkEnds(DriverStream state, CaptureInfo info) {
    if (!info.isCapturing()) {
      state.checkUsable();
      throw new IllegalStateException(
          "endCapture: %s is not capturing (expected: beginCapture before)".formatted(state));
    }
    if (state.capturing.own.isJoined(info)) {
      throw new IllegalStateException(
          "endCapture: %s takes part in a capture that began in another stream (expected: that one)"
              .formatted(state));
    }
  }

  private static long ended(CudaDriver driver, DriverStream state) {
    try {
      return streamEndCapture(driver, state);
    } catch (CudaException e) {
      throw explained(e);
    }
  }

  private static long streamEndCapture(CudaDriver driver, DriverStream state) {
    return driver.captures().streamEndCapture(state.device.id(), state.handle);
  }

  private static CudaException explained(CudaException e) {
    return switch (e.status()) {
      case STREAM_CAPTURE_UNJOINED ->
          e.explained(
              "another stream took part in the capture, and its last work is not waited for"
                  + " (expected: waitFor of that stream in this one before the end); there is no"
                  + " graph, and the streams can be used again");
      case STREAM_CAPTURE_INVALIDATED ->
          e.explained(
              "a call was made that a capture does not allow, by this program or another library;"
                  + " there is no graph, and the stream can be used again");
      case STREAM_CAPTURE_WRONG_THREAD ->
          e.explained(
              "the capture began in another thread (expected: that thread, or mode RELAXED)");
      default -> e;
    };
  }
}
