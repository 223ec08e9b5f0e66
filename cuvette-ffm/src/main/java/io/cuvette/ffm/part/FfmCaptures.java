package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.UserObject;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;

/** Calls about the capture of streams, and about graphs. Thread-safe. */
public final class FfmCaptures extends Part implements CaptureCalls {
  public static final MethodHandle BEGIN =
      Libcuda.function("cuStreamBeginCapture", 10010, POINTER, INT);
  public static final MethodHandle END =
      Libcuda.function("cuStreamEndCapture", 10000, POINTER, POINTER);
  public static final MethodHandle IS_CAPTURING =
      Libcuda.function("cuStreamIsCapturing", 10000, POINTER, POINTER);
  public static final MethodHandle GET_INFO =
      Libcuda.function(
          "cuStreamGetCaptureInfo", 11030, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER);
  public static final MethodHandle USER_OBJECT_CREATE =
      Libcuda.function("cuUserObjectCreate", 11030, POINTER, POINTER, POINTER, INT, INT);

  /** Of one reference. */
  public static final MethodHandle USER_OBJECT_RELEASE =
      MethodHandles.insertArguments(
          Libcuda.function("cuUserObjectRelease", 11030, POINTER, INT), 1, 1);

  public static final MethodHandle GRAPH_RETAIN_USER_OBJECT =
      Libcuda.function("cuGraphRetainUserObject", 11030, POINTER, POINTER, INT, INT);
  public static final MethodHandle GRAPH_INSTANTIATE =
      Libcuda.function("cuGraphInstantiateWithFlags", 11040, POINTER, POINTER, SIZE);
  public static final MethodHandle GRAPH_LAUNCH =
      Libcuda.function("cuGraphLaunch", 10000, POINTER, POINTER);
  public static final MethodHandle GRAPH_EXEC_DESTROY =
      Libcuda.function("cuGraphExecDestroy", 10000, POINTER);
  public static final MethodHandle GRAPH_DESTROY =
      Libcuda.function("cuGraphDestroy", 10000, POINTER);

  /** CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, which is required. */
  public static final int NO_DESTRUCTOR_SYNC = 1;

  /** CU_GRAPH_USER_OBJECT_MOVE. */
  public static final int MOVE_USER_OBJECT = 1;

  /** The part of the driver whose calls start here. */
  public FfmCaptures(Entry entry) {
    super(entry);
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    Call.of("cuStreamBeginCapture(stream=%#x, mode=%d, device=%d)", stream, mode, device)
        .run(_ -> (int) BEGIN.invokeExact(stream, mode), enterAsIs(device));
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    return Call.of("cuStreamEndCapture(stream=%#x, device=%d)", stream, device)
        .run(frame -> (int) END.invokeExact(stream, frame.out), enterAsIs(device));
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) IS_CAPTURING.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuStreamIsCapturing(stream=%#x, device=%d)", stream, device).failed(status);
    }
    return (int) result;
  }

  @Override
  public CaptureInfo streamGetCaptureInfo(int device, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status =
          (int)
              GET_INFO.invokeExact(
                  stream, frame.spare(), frame.out, frame.out + Long.BYTES, 0L, 0L);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int capture = frame.spareResult();
    long graph = frame.second();
    long id = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuStreamGetCaptureInfo(stream=%#x, device=%d)", stream, device).failed(status);
    }
    return CaptureInfo.of(capture, id, graph);
  }

  @Override
  public UserObject userObjectCreate() {
    Signal signal = Signal.take();
    try {
      long object =
          Call.of("cuUserObjectCreate()")
              .run(
                  frame ->
                      (int)
                          USER_OBJECT_CREATE.invokeExact(
                              frame.out, signal.address(), Signal.RAISE, 1, NO_DESTRUCTOR_SYNC),
                  enter());
      return new UserObject(object, signal::isRaised);
    } catch (RuntimeException e) {
      signal.unused();
      throw e;
    }
  }

  @Override
  public void userObjectRelease(long object) {
    entry.free(USER_OBJECT_RELEASE, object, "cuUserObjectRelease(object=%#x)");
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    Call.of("cuGraphRetainUserObject(graph=%#x, object=%#x)", graph, object)
        .run(
            _ -> (int) GRAPH_RETAIN_USER_OBJECT.invokeExact(graph, object, 1, MOVE_USER_OBJECT),
            enter());
  }

  @Override
  public long graphInstantiate(int device, long graph) {
    return Call.of("cuGraphInstantiateWithFlags(graph=%#x, device=%d)", graph, device)
        .run(frame -> (int) GRAPH_INSTANTIATE.invokeExact(frame.out, graph, 0L), enter(device));
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    Call.of("cuGraphLaunch(executable=%#x, stream=%#x, device=%d)", executable, stream, device)
        .run(_ -> (int) GRAPH_LAUNCH.invokeExact(executable, stream), enterAsIs(device));
  }

  @Override
  public void graphExecDestroy(long executable) {
    entry.free(GRAPH_EXEC_DESTROY, executable, "cuGraphExecDestroy(executable=%#x)");
  }

  @Override
  public void graphDestroy(long graph) {
    entry.free(GRAPH_DESTROY, graph, "cuGraphDestroy(graph=%#x)");
  }
}
