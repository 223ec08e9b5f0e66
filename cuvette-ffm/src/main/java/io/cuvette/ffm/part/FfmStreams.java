package io.cuvette.ffm.part;

import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.StreamHandle;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.invoke.MethodHandle;

/**
 * Calls about streams, and those by which a stream and Java code wait for each other. Thread-safe.
 */
public final class FfmStreams extends Part implements StreamCalls {
  public static final DriverFunction CREATE_WITH_PRIORITY =
      required("cuStreamCreateWithPriority(flags=%d, priority=%d, device=%d)", 5050, OUT, INT, INT);
  public static final DriverFunction DESTROY =
      required("cuStreamDestroy(stream=%#x, device=%d)", 4000, POINTER);
  public static final DriverFunction GET_PRIORITY =
      required("cuStreamGetPriority(stream=%#x, device=%d)", 5050, POINTER, OUT);
  public static final DriverFunction GET_FLAGS =
      required("cuStreamGetFlags(stream=%#x, device=%d)", 5050, POINTER, OUT);
  public static final DriverFunction GET_ID =
      required("cuStreamGetId(stream=%#x, device=%d)", 12000, POINTER, OUT);

  /** The form with two parameters: the one of CUDA 12.5 also gives a green context. */
  public static final DriverFunction GET_CONTEXT =
      optional("cuStreamGetCtx(stream=%#x, device=%d)", 9020, POINTER, OUT);

  public static final DriverFunction CONTEXT_GET_DEVICE =
      required("cuCtxGetDevice(stream=%#x, device=%d)", 2000, OUT);
  public static final MethodHandle QUERY = Libcuda.required("cuStreamQuery", 2000, POINTER);
  public static final DriverFunction SYNCHRONIZE =
      required("cuStreamSynchronize(stream=%#x, device=%d)", 2000, POINTER);
  public static final MethodHandle WAIT_EVENT =
      Libcuda.required("cuStreamWaitEvent", 3020, POINTER, POINTER, INT);
  public static final DriverFunction LAUNCH_HOST_FUNC =
      optional("cuLaunchHostFunc(stream=%#x, device=%4$d)", 10000, POINTER, POINTER, POINTER);

  /** The second form, which every device supports. */
  public static final DriverFunction WAIT_VALUE_32 =
      optional(
          "cuStreamWaitValue32(stream=%#x, address=%#x, value=%d, flags=%d, device=%d)",
          11070, POINTER, POINTER, INT, INT);

  private final FfmCaptures captures;
  private final HostNodes hosts;

  /** The part of the driver whose calls start here. */
  public FfmStreams(Entry entry) {
    super(entry);
    this.captures = new FfmCaptures(entry);
    this.hosts = new HostNodes(entry);
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    return CREATE_WITH_PRIORITY.call(flags, priority, device, enter(device));
  }

  @Override
  public void streamDestroy(int device, long stream) {
    DESTROY.free(stream, device, entry.enterToFree(device));
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    return (int) GET_PRIORITY.call(stream, device, enter(device));
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    return (int) GET_FLAGS.call(stream, device, enter(device));
  }

  @Override
  public long streamGetId(int device, long stream) {
    return GET_ID.call(stream, device, enter(device));
  }

  /** Not by cuStreamGetDevice, which makes a capture of the stream invalid. */
  @Override
  public int streamGetDevice(int device, long stream) {
    if (Long.compareUnsigned(stream, StreamHandle.PER_THREAD) <= 0) {
      entry.checkOpen();
      contexts().handle(device); // checks it
      return device;
    }
    long context = GET_CONTEXT.call(stream, device, enter(device));
    long handle = CONTEXT_GET_DEVICE.call(stream, device, entry.enterContext(context));
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
    long wait = PoolEnds.HERE.beginWait();
    try {
      SYNCHRONIZE.call(stream, device, enterFor(device, stream));
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

  /** A function that is captured runs in each launch of the graph. */
  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    long graph = captures.capturedGraph(device, stream);
    if (graph == 0) {
      launchOnce(device, stream, function);
    } else {
      hosts.add(
          device,
          graph,
          function,
          number -> launchFunction(device, stream, HostFunctions.ENTRY, number));
    }
  }

  private void launchOnce(int device, long stream, Runnable function) {
    long number = HostFunctions.add(entry, function);
    boolean launched = false;
    try {
      HostThreads.used(device);
      launchFunction(device, stream, HostFunctions.ENTRY, number);
      launched = true;
    } finally {
      if (!launched) {
        HostFunctions.remove(number);
      }
    }
  }

  /** The same with a C function {@code void (*)(void* argument)}. */
  void launchFunction(int device, long stream, long function, long argument) {
    LAUNCH_HOST_FUNC.call(stream, function, argument, device, enterAsIs(device));
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    WAIT_VALUE_32.call(stream, address, value, flags, device, 0, enterAsIs(device));
  }
}
