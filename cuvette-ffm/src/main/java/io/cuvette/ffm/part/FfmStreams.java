package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;

import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.StreamHandle;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;

/**
 * Calls about streams, and those by which a stream and Java code wait for each other. Thread-safe.
 */
public final class FfmStreams extends Part implements StreamCalls {
  public static final MethodHandle CREATE_WITH_PRIORITY =
      Libcuda.required("cuStreamCreateWithPriority", 5050, POINTER, INT, INT);
  public static final MethodHandle DESTROY = Libcuda.required("cuStreamDestroy", 4000, POINTER);
  public static final MethodHandle GET_PRIORITY =
      Libcuda.required("cuStreamGetPriority", 5050, POINTER, POINTER);
  public static final MethodHandle GET_FLAGS =
      Libcuda.required("cuStreamGetFlags", 5050, POINTER, POINTER);
  public static final MethodHandle GET_ID =
      Libcuda.required("cuStreamGetId", 12000, POINTER, POINTER);

  /** The form with two parameters: the one of CUDA 12.5 also gives a green context. */
  public static final MethodHandle GET_CONTEXT =
      Libcuda.function("cuStreamGetCtx", 9020, POINTER, POINTER);

  public static final MethodHandle CONTEXT_GET_DEVICE =
      Libcuda.required("cuCtxGetDevice", 2000, POINTER);
  public static final MethodHandle QUERY = Libcuda.required("cuStreamQuery", 2000, POINTER);
  public static final MethodHandle SYNCHRONIZE =
      Libcuda.required("cuStreamSynchronize", 2000, POINTER);
  public static final MethodHandle WAIT_EVENT =
      Libcuda.required("cuStreamWaitEvent", 3020, POINTER, POINTER, INT);
  public static final MethodHandle LAUNCH_HOST_FUNC =
      Libcuda.function("cuLaunchHostFunc", 10000, POINTER, POINTER, POINTER);

  /** The second form, which every device supports. */
  public static final MethodHandle WAIT_VALUE_32 =
      Libcuda.function("cuStreamWaitValue32", 11070, POINTER, POINTER, INT, INT);

  /** The part of the driver whose calls start here. */
  public FfmStreams(Entry entry) {
    super(entry);
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    return Call.of(
            "cuStreamCreateWithPriority(flags=%d, priority=%d, device=%d)", flags, priority, device)
        .run(
            frame -> (int) CREATE_WITH_PRIORITY.invokeExact(frame.out, flags, priority),
            enter(device));
  }

  @Override
  public void streamDestroy(int device, long stream) {
    entry.free(DESTROY, stream, device, "cuStreamDestroy(stream=%#x, device=%d)");
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    return (int)
        Call.of("cuStreamGetPriority(stream=%#x, device=%d)", stream, device)
            .run(frame -> (int) GET_PRIORITY.invokeExact(stream, frame.out), enter(device));
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    return (int)
        Call.of("cuStreamGetFlags(stream=%#x, device=%d)", stream, device)
            .run(frame -> (int) GET_FLAGS.invokeExact(stream, frame.out), enter(device));
  }

  @Override
  public long streamGetId(int device, long stream) {
    return Call.of("cuStreamGetId(stream=%#x, device=%d)", stream, device)
        .run(frame -> (int) GET_ID.invokeExact(stream, frame.out), enter(device));
  }

  /** Not by cuStreamGetDevice, which makes a capture of the stream invalid. */
  @Override
  public int streamGetDevice(int device, long stream) {
    if (Long.compareUnsigned(stream, StreamHandle.PER_THREAD) <= 0) {
      entry.checkOpen();
      contexts().handle(device); // checks it
      return device;
    }
    long context =
        Call.of("cuStreamGetCtx(stream=%#x, device=%d)", stream, device)
            .run(frame -> (int) GET_CONTEXT.invokeExact(stream, frame.out), enter(device));
    long handle =
        Call.of("cuCtxGetDevice(stream=%#x, device=%d)", stream, device)
            .run(
                frame -> (int) CONTEXT_GET_DEVICE.invokeExact(frame.out),
                entry.enterContext(context));
    return contexts().ordinal((int) handle);
  }

  @Override
  public boolean streamQuery(int device, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) QUERY.invokeExact(stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS && status != Call.NOT_READY) {
      throw Call.of("cuStreamQuery(stream=%#x, device=%d)", stream, device).failed(status);
    }
    return status == SUCCESS;
  }

  @Override
  public void streamSynchronize(int device, long stream) {
    Call call = Call.of("cuStreamSynchronize(stream=%#x, device=%d)", stream, device);
    long wait = PoolEnds.HERE.beginWait();
    try {
      call.run(_ -> (int) SYNCHRONIZE.invokeExact(stream), enterFor(device, stream));
    } finally {
      PoolEnds.HERE.endWait(wait);
    }
  }

  @Override
  public void streamWaitEvent(int device, long stream, long event) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) WAIT_EVENT.invokeExact(stream, event, 0);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuStreamWaitEvent(stream=%#x, event=%#x, device=%d)", stream, event, device)
          .failed(status);
    }
  }

  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    long number = HostFunctions.add(entry, function);
    boolean launched = false;
    try {
      Call.of("cuLaunchHostFunc(stream=%#x, device=%d)", stream, device)
          .run(
              _ -> (int) LAUNCH_HOST_FUNC.invokeExact(stream, HostFunctions.ENTRY, number),
              enterAsIs(device));
      launched = true;
    } finally {
      if (!launched) {
        HostFunctions.remove(number);
      }
    }
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    Call.of(
            "cuStreamWaitValue32(stream=%#x, address=%#x, value=%d, flags=%d, device=%d)",
            stream, address, value, flags, device)
        .run(
            _ -> (int) WAIT_VALUE_32.invokeExact(stream, address, value, flags), enterAsIs(device));
  }
}
