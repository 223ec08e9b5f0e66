package io.cuvette.ffm;

import io.cuvette.driver.EventCalls;

/** Calls about events. Thread-safe. */
interface FfmEvents extends FfmCalls, EventCalls {

  @Override
  default long eventCreate(int device, int flags) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) EventFunctions.CREATE.invokeExact(frame.out, flags);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuEventCreate(flags=%d, device=%d)", flags, device);
    }
    return result;
  }

  @Override
  default void eventDestroy(int device, long event) {
    CallFrame frame = enterToFree(device);
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) EventFunctions.DESTROY.invokeExact(event);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuEventDestroy(event=%#x, device=%d)", event, device);
    }
  }

  @Override
  default void eventRecord(int device, long event, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) EventFunctions.RECORD.invokeExact(event, stream);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuEventRecord(event=%#x, stream=%#x, device=%d)", event, stream, device);
    }
  }

  @Override
  default boolean eventQuery(int device, long event) {
    CallFrame frame = enterFor(device, event);
    int status;
    do {
      try {
        status = (int) EventFunctions.QUERY.invokeExact(event);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    if (status != SUCCESS && status != NOT_READY) {
      throw Failure.of(status, "cuEventQuery(event=%#x, device=%d)", event, device);
    }
    return status == SUCCESS;
  }

  @Override
  default void eventSynchronize(int device, long event) {
    long wait = PoolEnds.HERE.beginWait();
    int status;
    try {
      status = awaitEvent(device, event);
    } finally {
      PoolEnds.HERE.endWait(wait);
    }
    if (status != SUCCESS) {
      throw Failure.of(status, "cuEventSynchronize(event=%#x, device=%d)", event, device);
    }
  }

  private int awaitEvent(int device, long event) {
    CallFrame frame = enterFor(device, event);
    int status;
    do {
      try {
        status = (int) EventFunctions.SYNCHRONIZE.invokeExact(event);
      } catch (Throwable e) {
        throw frame.broken(e);
      }
    } while (frame.lacksContext(status));
    frame.leave();
    return status;
  }

  @Override
  default float eventElapsedTime(int device, long start, long end) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) EventFunctions.ELAPSED_TIME.invokeExact(frame.out, start, end);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuEventElapsedTime(start=%#x, end=%#x, device=%d)", start, end, device);
    }
    return Float.intBitsToFloat((int) result);
  }
}
