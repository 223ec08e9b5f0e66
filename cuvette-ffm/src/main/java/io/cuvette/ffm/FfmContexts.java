package io.cuvette.ffm;

import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;

/** Calls about the contexts of devices. Thread-safe. */
interface FfmContexts extends FfmCalls, DeviceCalls {

  @Override
  default void ctxEnablePeerAccess(int device, int peer) {
    long context = context(peer);
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) ContextFunctions.ENABLE_PEER_ACCESS.invokeExact(context, 0);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuCtxEnablePeerAccess(device=%d, peer=%d)", device, peer);
    }
  }

  @Override
  default void ctxDisablePeerAccess(int device, int peer) {
    long context = context(peer);
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) ContextFunctions.DISABLE_PEER_ACCESS.invokeExact(context);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuCtxDisablePeerAccess(device=%d, peer=%d)", device, peer);
    }
  }

  @Override
  default void ctxSynchronize(int device) {
    long wait = PoolEnds.HERE.beginWait();
    try {
      if (ContextFunctions.SYNCHRONIZES_ANY) {
        synchronizeAny(device);
      } else {
        synchronizeCurrent(device);
      }
    } finally {
      PoolEnds.HERE.endWait(wait);
    }
  }

  private void synchronizeAny(int device) {
    long context = context(device);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) ContextFunctions.SYNCHRONIZE_ANY.invokeExact(context);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuCtxSynchronize(device=%d)", device);
    }
  }

  private void synchronizeCurrent(int device) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) ContextFunctions.SYNCHRONIZE.invokeExact();
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuCtxSynchronize(device=%d)", device);
    }
  }

  @Override
  default PriorityRange ctxGetStreamPriorityRange(int device) {
    CallFrame frame = enter(device);
    int status;
    try {
      status =
          (int)
              ContextFunctions.GET_STREAM_PRIORITY_RANGE.invokeExact(
                  frame.out, frame.out + Integer.BYTES);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuCtxGetStreamPriorityRange(device=%d)", device);
    }
    return new PriorityRange((int) result, (int) (result >> Integer.SIZE));
  }

  @Override
  default long ctxGetLimit(int device, int limit) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) ContextFunctions.GET_LIMIT.invokeExact(frame.out, limit);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuCtxGetLimit(limit=%d, device=%d)", limit, device);
    }
    return result;
  }

  @Override
  default void ctxSetLimit(int device, int limit, long value) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) ContextFunctions.SET_LIMIT.invokeExact(limit, value);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status, "cuCtxSetLimit(limit=%d, value=%d, device=%d)", limit, value, device);
    }
  }

  @Override
  default MemoryInfo memGetInfo(int device) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) MemoryFunctions.GET_INFO.invokeExact(frame.out, frame.out + Long.BYTES);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long total = frame.second();
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuMemGetInfo(device=%d)", device);
    }
    return new MemoryInfo(result, total);
  }
}
