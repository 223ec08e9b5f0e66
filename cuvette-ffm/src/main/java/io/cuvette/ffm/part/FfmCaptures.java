package io.cuvette.ffm.part;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.UserObject;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;

/** Calls about the capture of streams, and about graphs. Thread-safe. */
public final class FfmCaptures extends Part implements CaptureCalls {
  public static final DriverFunction BEGIN =
      optional("cuStreamBeginCapture(stream=%#x, mode=%d, device=%d)", 10010, POINTER, INT);
  public static final DriverFunction END =
      optional("cuStreamEndCapture(stream=%#x, device=%d)", 10000, POINTER, OUT);
  public static final MethodHandle IS_CAPTURING =
      Libcuda.function("cuStreamIsCapturing", 10000, POINTER, POINTER);
  public static final MethodHandle GET_INFO =
      Libcuda.function(
          "cuStreamGetCaptureInfo", 11030, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER);
  public static final DriverFunction USER_OBJECT_CREATE =
      optional("cuUserObjectCreate()", 11030, OUT, POINTER, POINTER, INT, INT);
  public static final DriverFunction USER_OBJECT_RELEASE =
      optional("cuUserObjectRelease(object=%#x)", 11030, POINTER, INT);
  public static final DriverFunction GRAPH_RETAIN_USER_OBJECT =
      optional("cuGraphRetainUserObject(graph=%#x, object=%#x)", 11030, POINTER, POINTER, INT, INT);
  public static final DriverFunction GRAPH_INSTANTIATE =
      optional("cuGraphInstantiateWithFlags(graph=%#x, device=%3$d)", 11040, OUT, POINTER, SIZE);
  public static final DriverFunction GRAPH_LAUNCH =
      optional("cuGraphLaunch(executable=%#x, stream=%#x, device=%d)", 10000, POINTER, POINTER);
  public static final DriverFunction GRAPH_EXEC_DESTROY =
      optional("cuGraphExecDestroy(executable=%#x)", 10000, POINTER);
  public static final DriverFunction GRAPH_DESTROY =
      optional("cuGraphDestroy(graph=%#x)", 10000, POINTER);

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
    BEGIN.call(stream, mode, device, enterAsIs(device));
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    return END.call(stream, device, enterAsIs(device));
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
          USER_OBJECT_CREATE.call(signal.address(), Signal.RAISE, 1, NO_DESTRUCTOR_SYNC, enter());
      return new UserObject(object, signal::isRaised);
    } catch (RuntimeException e) {
      signal.unused();
      throw e;
    }
  }

  @Override
  public void userObjectRelease(long object) {
    USER_OBJECT_RELEASE.free(object, 1, entry.enterToFree()); // one reference
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    GRAPH_RETAIN_USER_OBJECT.call(graph, object, 1, MOVE_USER_OBJECT, enter());
  }

  @Override
  public long graphInstantiate(int device, long graph) {
    return GRAPH_INSTANTIATE.call(graph, 0, device, enter(device));
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    GRAPH_LAUNCH.call(executable, stream, device, enterAsIs(device));
  }

  @Override
  public void graphExecDestroy(long executable) {
    GRAPH_EXEC_DESTROY.free(executable, 0, entry.enterToFree());
  }

  @Override
  public void graphDestroy(long graph) {
    GRAPH_DESTROY.free(graph, 0, entry.enterToFree());
  }
}
