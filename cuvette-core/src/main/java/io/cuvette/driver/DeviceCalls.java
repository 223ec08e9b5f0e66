package io.cuvette.driver;

import java.util.OptionalInt;
import java.util.UUID;

/** Driver calls about devices and their contexts. Thread-safe. */
public interface DeviceCalls {

  /**
   * The newest CUDA version the driver supports, 1000 × major + 10 × minor (cuDriverGetVersion).
   */
  int driverGetVersion();

  /**
   * The version of the CUDA runtime library found on the machine, if any (cudaRuntimeGetVersion).
   */
  OptionalInt runtimeGetVersion();

  /** The number of devices, at least 1 (cuDeviceGetCount). */
  int deviceGetCount();

  /** The name of a device (cuDeviceGetName). */
  String deviceGetName(int device);

  /** The identity of a device, unique over machines (cuDeviceGetUuid). */
  UUID deviceGetUuid(int device);

  /** The memory of a device in bytes (cuDeviceTotalMem). */
  long deviceTotalMem(int device);

  /**
   * One attribute of a device (cuDeviceGetAttribute).
   *
   * @throws CudaException with {@link CudaStatus#INVALID_VALUE} for an attribute the driver does
   *     not know
   */
  int deviceGetAttribute(int attribute, int device);

  /** The address of a device on the bus as {@code dddd:bb:dd.f} (cuDeviceGetPCIBusId). */
  String deviceGetPciBusId(int device);

  /**
   * The device at an address of the bus (cuDeviceGetByPCIBusId).
   *
   * @throws CudaException INVALID_VALUE for a text that is no address, INVALID_DEVICE for an
   *     unknown one
   */
  int deviceGetByPciBusId(String pciBusId);

  /** Whether a device can address the memory of a peer (cuDeviceCanAccessPeer). */
  boolean deviceCanAccessPeer(int device, int peer);

  /**
   * Lets a device address the memory of a peer; an error if it can already (cuCtxEnablePeerAccess).
   */
  void ctxEnablePeerAccess(int device, int peer);

  /** Takes that back; an error if it was not enabled (cuCtxDisablePeerAccess). */
  void ctxDisablePeerAccess(int device, int peer);

  /** Waits for all work of a device (cuCtxSynchronize). */
  void ctxSynchronize(int device);

  /** The priorities a stream of the device can have (cuCtxGetStreamPriorityRange). */
  PriorityRange ctxGetStreamPriorityRange(int device);

  /** A resource limit of the device's context, CUlimit (cuCtxGetLimit). */
  long ctxGetLimit(int device, int limit);

  /** Sets a resource limit of the device's context, CUlimit (cuCtxSetLimit). */
  void ctxSetLimit(int device, int limit, long value);

  /** Free and total memory of a device (cuMemGetInfo). */
  MemoryInfo memGetInfo(int device);
}
