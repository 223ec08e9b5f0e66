package io.cuvette.ffm.part;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;

/** Calls about the capture of streams. Thread-safe. */
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
}
