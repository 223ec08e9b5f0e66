package io.cuvette.ffm.part;

import io.cuvette.driver.EventCalls;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;

/** Calls about events. Thread-safe. */
public final class FfmEvents extends Part implements EventCalls {
  public static final MethodHandle CREATE = Libcuda.required("cuEventCreate", 2000, POINTER, INT);
  public static final MethodHandle DESTROY = Libcuda.required("cuEventDestroy", 4000, POINTER);
  public static final MethodHandle RECORD =
      Libcuda.required("cuEventRecord", 2000, POINTER, POINTER);
  public static final MethodHandle QUERY = Libcuda.required("cuEventQuery", 2000, POINTER);
  public static final DriverFunction SYNCHRONIZE =
      required("cuEventSynchronize(event=%#x, device=%d)", 2000, POINTER);

  /** Newer drivers have another form with the same parameters, which is what cuda.h means. */
  public static final DriverFunction ELAPSED_TIME =
      required(
          "cuEventElapsedTime(start=%#x, end=%#x, device=%d)",
          Libcuda.has("cuEventElapsedTime", 12080) ? 12080 : 2000, OUT, POINTER, POINTER);

  /** The part of the driver whose calls start here. */
  public FfmEvents(Entry entry) {
    super(entry);
  }

  @Override
  public long eventCreate(int device, int flags) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) CREATE.invokeExact(frame.out, flags);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuEventCreate(flags=%d, device=%d)", flags, device).failed(status);
    }
    return result;
  }

  @Override
  public void eventDestroy(int device, long event) {
    CallFrame frame = entry.enterToFree(device);
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) DESTROY.invokeExact(event);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuEventDestroy(event=%#x, device=%d)", event, device).failed(status);
    }
  }

  @Override
  public void eventRecord(int device, long event, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) RECORD.invokeExact(event, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuEventRecord(event=%#x, stream=%#x, device=%d)", event, stream, device)
          .failed(status);
    }
  }

  @Override
  public boolean eventQuery(int device, long event) {
    CallFrame frame = enterFor(device, event);
    int status;
    do {
      try {
        status = (int) QUERY.invokeExact(event);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS && status != Call.NOT_READY) {
      throw Call.of("cuEventQuery(event=%#x, device=%d)", event, device).failed(status);
    }
    return status == SUCCESS;
  }

  @Override
  public void eventSynchronize(int device, long event) {
    long wait = PoolEnds.HERE.beginWait();
    try {
      SYNCHRONIZE.call(event, device, enterFor(device, event));
    } finally {
      PoolEnds.HERE.endWait(wait);
    }
  }

  @Override
  public float eventElapsedTime(int device, long start, long end) {
    return Float.intBitsToFloat((int) ELAPSED_TIME.call(start, end, device, enter(device)));
  }
}
