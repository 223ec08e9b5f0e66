package io.cuvette.ffm;

import io.cuvette.driver.CaptureCalls;

/** Calls about the capture of streams. Thread-safe. */
interface FfmCapture extends FfmCalls, CaptureCalls {

  @Override
  default void streamBeginCapture(int device, long stream, int mode) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) CaptureFunctions.BEGIN.invokeExact(stream, mode);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuStreamBeginCapture(stream=%#x, mode=%d, device=%d)", stream, mode, device);
    }
  }

  @Override
  default long streamEndCapture(int device, long stream) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) CaptureFunctions.END.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamEndCapture(stream=%#x, device=%d)", stream, device);
    }
    return result;
  }

  @Override
  default int streamIsCapturing(int device, long stream) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) CaptureFunctions.IS_CAPTURING.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamIsCapturing(stream=%#x, device=%d)", stream, device);
    }
    return (int) result;
  }

  @Override
  default void graphDestroy(long graph) {
    CallFrame frame = enterToFree();
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) CaptureFunctions.GRAPH_DESTROY.invokeExact(graph);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuGraphDestroy(graph=%#x)", graph);
    }
  }
}
