package io.cuvette.ffm;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.UserObject;

/** Calls about the capture of streams. Thread-safe. */
interface FfmCaptures extends FfmCalls, CaptureCalls {

  @Override
  default void streamBeginCapture(int device, long stream, int mode) {
    CallFrame frame = enterAsIs(device);
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
    CallFrame frame = enterAsIs(device);
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
    CallFrame frame = enterAsIs(device);
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
  default CaptureInfo streamGetCaptureInfo(int device, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status =
          (int)
              CaptureFunctions.GET_INFO.invokeExact(
                  stream, frame.spare(), frame.out, frame.out + Long.BYTES, 0L, 0L);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int capture = frame.spareResult();
    long graph = frame.second();
    long id = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamGetCaptureInfo(stream=%#x, device=%d)", stream, device);
    }
    return CaptureInfo.of(capture, id, graph);
  }

  @Override
  default UserObject userObjectCreate() {
    Signal signal = Signal.take();
    CallFrame frame = enter();
    int status;
    try {
      status =
          (int)
              CaptureFunctions.USER_OBJECT_CREATE.invokeExact(
                  frame.out, signal.address(), Signal.RAISE, 1, Layouts.NO_DESTRUCTOR_SYNC);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      signal.unused();
      throw Failure.of(status, "cuUserObjectCreate()");
    }
    return new UserObject(result, signal::isRaised);
  }

  @Override
  default void userObjectRelease(long object) {
    CallFrame frame = enterToFree();
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) CaptureFunctions.USER_OBJECT_RELEASE.invokeExact(object, 1);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuUserObjectRelease(object=%#x)", object);
    }
  }

  @Override
  default void graphRetainUserObject(long graph, long object) {
    CallFrame frame = enter();
    int status;
    try {
      status =
          (int)
              CaptureFunctions.GRAPH_RETAIN_USER_OBJECT.invokeExact(
                  graph, object, 1, Layouts.MOVE_USER_OBJECT);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuGraphRetainUserObject(graph=%#x, object=%#x)", graph, object);
    }
  }
}
