package io.cuvette.ffm;

import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.StreamHandle;

/** Calls about streams. Thread-safe. */
interface FfmStreams extends FfmCalls, StreamCalls {

  @Override
  default long streamCreateWithPriority(int device, int flags, int priority) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) StreamFunctions.CREATE_WITH_PRIORITY.invokeExact(frame.out, flags, priority);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuStreamCreateWithPriority(flags=%d, priority=%d, device=%d)",
          flags,
          priority,
          device);
    }
    return result;
  }

  @Override
  default void streamDestroy(int device, long stream) {
    CallFrame frame = enterToFree(device);
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) StreamFunctions.DESTROY.invokeExact(stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamDestroy(stream=%#x, device=%d)", stream, device);
    }
  }

  @Override
  default int streamGetPriority(int device, long stream) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) StreamFunctions.GET_PRIORITY.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamGetPriority(stream=%#x, device=%d)", stream, device);
    }
    return (int) result;
  }

  @Override
  default int streamGetFlags(int device, long stream) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) StreamFunctions.GET_FLAGS.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamGetFlags(stream=%#x, device=%d)", stream, device);
    }
    return (int) result;
  }

  @Override
  default long streamGetId(int device, long stream) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) StreamFunctions.GET_ID.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamGetId(stream=%#x, device=%d)", stream, device);
    }
    return result;
  }

  @Override
  default int streamGetDevice(int device, long stream) {
    if (Long.compareUnsigned(stream, StreamHandle.PER_THREAD) <= 0) {
      checkOpen();
      contexts().handle(device); // checks it
      return device;
    }
    return contexts().ordinal(contextDevice(device, stream));
  }

  /** Not by cuStreamGetDevice, which makes a capture of the stream invalid. */
  private long contextOf(int device, long stream) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) StreamFunctions.GET_CTX.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamGetCtx(stream=%#x, device=%d)", stream, device);
    }
    return result;
  }

  private int contextDevice(int device, long stream) {
    long context = contextOf(device, stream);
    CallFrame frame = enter();
    frame.enter(context);
    int status;
    try {
      status = (int) ContextFunctions.GET_DEVICE.invokeExact(frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int handle = (int) frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuCtxGetDevice(stream=%#x, device=%d)", stream, device);
    }
    return handle;
  }

  @Override
  default boolean streamQuery(int device, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) StreamFunctions.QUERY.invokeExact(stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS && status != NOT_READY) {
      throw Failure.of(status, "cuStreamQuery(stream=%#x, device=%d)", stream, device);
    }
    return status == SUCCESS;
  }

  @Override
  default void streamSynchronize(int device, long stream) {
    long wait = PoolEnds.HERE.beginWait();
    int status;
    try {
      status = awaitStream(device, stream);
    } finally {
      PoolEnds.HERE.endWait(wait);
    }
    if (status != SUCCESS) {
      throw Failure.of(status, "cuStreamSynchronize(stream=%#x, device=%d)", stream, device);
    }
  }

  private int awaitStream(int device, long stream) {
    CallFrame frame = enterFor(device, stream);
    int status;
    do {
      try {
        status = (int) StreamFunctions.SYNCHRONIZE.invokeExact(stream);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    return status;
  }

  @Override
  default void streamWaitEvent(int device, long stream, long event) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) StreamFunctions.WAIT_EVENT.invokeExact(stream, event, 0);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuStreamWaitEvent(stream=%#x, event=%#x, device=%d)", stream, event, device);
    }
  }
}
