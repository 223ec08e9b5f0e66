package io.cuvette.ffm;

import io.cuvette.driver.DeviceCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.OptionalInt;
import java.util.UUID;

/** Calls about devices; none of them needs a context. Thread-safe. */
interface FfmDevices extends FfmCalls, DeviceCalls {

  /** As many bytes as the runtime has for a name; enough. */
  int NAME_BYTES = 256;

  /** More than dddddddd:bb:dd.f and its end. */
  int PCI_BYTES = 32;

  @Override
  default int driverGetVersion() {
    checkOpen();
    return Startup.version();
  }

  @Override
  default OptionalInt runtimeGetVersion() {
    return RuntimeLibrary.version();
  }

  @Override
  default int deviceGetCount() {
    checkOpen();
    return contexts().size();
  }

  @Override
  default String deviceGetName(int device) {
    int handle = contexts().handle(device);
    MemorySegment text = Arena.ofAuto().allocate(NAME_BYTES);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) DeviceFunctions.GET_NAME.invokeExact(text, NAME_BYTES, handle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceGetName(device=%d)", device);
    }
    return text.getString(0);
  }

  @Override
  default UUID deviceGetUuid(int device) {
    int handle = contexts().handle(device);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) DeviceFunctions.GET_UUID.invokeExact(frame.out, handle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long second = frame.second();
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceGetUuid(device=%d)", device);
    }
    return new UUID(Long.reverseBytes(result), Long.reverseBytes(second));
  }

  @Override
  default long deviceTotalMem(int device) {
    int handle = contexts().handle(device);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) DeviceFunctions.TOTAL_MEM.invokeExact(frame.out, handle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceTotalMem(device=%d)", device);
    }
    return result;
  }

  @Override
  default int deviceGetAttribute(int attribute, int device) {
    int handle = contexts().handle(device);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) DeviceFunctions.GET_ATTRIBUTE.invokeExact(frame.out, attribute, handle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceGetAttribute(attribute=%d, device=%d)", attribute, device);
    }
    return (int) result;
  }

  @Override
  default String deviceGetPciBusId(int device) {
    int handle = contexts().handle(device);
    MemorySegment text = Arena.ofAuto().allocate(PCI_BYTES);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) DeviceFunctions.GET_PCI_BUS_ID.invokeExact(text, PCI_BYTES, handle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceGetPCIBusId(device=%d)", device);
    }
    return text.getString(0);
  }

  @Override
  default int deviceGetByPciBusId(String pciBusId) {
    if (pciBusId.indexOf('\0') >= 0) { // C would read up to there
      throw Failure.of(INVALID_VALUE, "cuDeviceGetByPCIBusId(pciBusId=%s)", pciBusId);
    }
    MemorySegment text = Arena.ofAuto().allocateFrom(pciBusId);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) DeviceFunctions.GET_BY_PCI_BUS_ID.invokeExact(frame.out, text);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int handle = (int) frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceGetByPCIBusId(pciBusId=%s)", pciBusId);
    }
    return contexts().ordinal(handle);
  }

  @Override
  default boolean deviceCanAccessPeer(int device, int peer) {
    int handle = contexts().handle(device);
    int peerHandle = contexts().handle(peer);
    CallFrame frame = enter();
    int status;
    try {
      status = (int) DeviceFunctions.CAN_ACCESS_PEER.invokeExact(frame.out, handle, peerHandle);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuDeviceCanAccessPeer(device=%d, peer=%d)", device, peer);
    }
    return (int) result != 0;
  }
}
