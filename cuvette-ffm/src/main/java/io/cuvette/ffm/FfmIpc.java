package io.cuvette.ffm;

import io.cuvette.driver.IpcCalls;
import java.lang.foreign.MemorySegment;

/** Calls that share plain allocations and events with other processes. Thread-safe. */
interface FfmIpc extends FfmCalls, IpcCalls {

  /** CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the one way the driver knows. */
  int LAZY_PEER_ACCESS = 1;

  @Override
  default byte[] ipcGetMemHandle(int device, long address) {
    MemorySegment handle = IpcHandles.room();
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) IpcFunctions.GET_MEMORY.invokeExact(handle, address);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuIpcGetMemHandle(address=%#x, device=%d)", address, device);
    }
    return IpcHandles.bytes(handle);
  }

  @Override
  default long ipcOpenMemHandle(int device, byte[] handle) {
    MemorySegment structure = IpcHandles.of(handle);
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) IpcFunctions.OPEN_MEMORY.invokeExact(frame.out, structure, LAZY_PEER_ACCESS);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long address = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuIpcOpenMemHandle(device=%d)", device);
    }
    return address;
  }

  @Override
  default void ipcCloseMemHandle(int device, long address) {
    CallFrame frame = enterToFree(device);
    if (frame == null) {
      return;
    }
    int status;
    try {
      status = (int) IpcFunctions.CLOSE_MEMORY.invokeExact(address);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuIpcCloseMemHandle(address=%#x, device=%d)", address, device);
    }
  }

  @Override
  default byte[] ipcGetEventHandle(int device, long event) {
    MemorySegment handle = IpcHandles.room();
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) IpcFunctions.GET_EVENT.invokeExact(handle, event);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuIpcGetEventHandle(event=%#x, device=%d)", event, device);
    }
    return IpcHandles.bytes(handle);
  }

  @Override
  default long ipcOpenEventHandle(int device, byte[] handle) {
    MemorySegment structure = IpcHandles.of(handle);
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) IpcFunctions.OPEN_EVENT.invokeExact(frame.out, structure);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long event = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuIpcOpenEventHandle(device=%d)", device);
    }
    return event;
  }
}
