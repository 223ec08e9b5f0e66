package io.cuvette.driver;

import java.util.OptionalInt;
import java.util.UUID;

/** Driver calls about devices and their contexts. Thread-safe. */
public interface DeviceCalls {

  /**
   * {@return the newest CUDA version the driver supports, 1000 × major + 10 × minor
   * (cuDriverGetVersion)}
   *
   * @throws CudaException if the driver reports an error
   */
  int driverGetVersion();

  /**
   * {@return the version of the CUDA runtime library found on the machine, if any
   * (cudaRuntimeGetVersion)}
   *
   * @throws CudaException if the driver reports an error
   */
  OptionalInt runtimeGetVersion();

  /**
   * {@return the number of devices, at least 1 (cuDeviceGetCount)}
   *
   * @throws CudaException if the driver reports an error
   */
  int deviceGetCount();

  /**
   * {@return the name of a device (cuDeviceGetName)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  String deviceGetName(int device);

  /**
   * {@return the identity of a device, unique over machines (cuDeviceGetUuid)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  UUID deviceGetUuid(int device);

  /**
   * {@return the memory of a device in bytes (cuDeviceTotalMem)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  long deviceTotalMem(int device);

  /**
   * {@return one attribute of a device (cuDeviceGetAttribute)}
   *
   * @param attribute CUdevice_attribute
   * @param device the device, from 0
   * @throws CudaException with {@link CudaStatus#INVALID_VALUE} for an attribute the driver does
   *     not know
   */
  int deviceGetAttribute(int attribute, int device);

  /**
   * {@return the address of a device on the bus as {@code dddd:bb:dd.f} (cuDeviceGetPCIBusId)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  String deviceGetPciBusId(int device);

  /**
   * {@return the device at an address of the bus (cuDeviceGetByPCIBusId)}
   *
   * @param pciBusId the address as {@code dddd:bb:dd.f}
   * @throws CudaException INVALID_VALUE for a text that is no address, INVALID_DEVICE for an
   *     unknown one
   */
  int deviceGetByPciBusId(String pciBusId);

  /**
   * {@return whether a device can address the memory of a peer (cuDeviceCanAccessPeer)}
   *
   * @param device the device, from 0
   * @param peer the other device, from 0
   * @throws CudaException if the driver reports an error
   */
  boolean deviceCanAccessPeer(int device, int peer);

  /**
   * Enables a device to access the memory of a peer; an error if it is enabled already
   * (cuCtxEnablePeerAccess).
   *
   * @param device the device, from 0
   * @param peer the other device, from 0
   * @throws CudaException if the driver reports an error
   */
  void ctxEnablePeerAccess(int device, int peer);

  /**
   * Disables the access of a device to the memory of a peer; an error if it is not enabled
   * (cuCtxDisablePeerAccess).
   *
   * @param device the device, from 0
   * @param peer the other device, from 0
   * @throws CudaException if the driver reports an error
   */
  void ctxDisablePeerAccess(int device, int peer);

  /**
   * Waits for all work of a device (cuCtxSynchronize).
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  void ctxSynchronize(int device);

  /**
   * {@return the priorities a stream of the device can have (cuCtxGetStreamPriorityRange)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  PriorityRange ctxGetStreamPriorityRange(int device);

  /**
   * {@return a resource limit of the device's context, CUlimit (cuCtxGetLimit)}
   *
   * @param device the device, from 0
   * @param limit CUlimit
   * @throws CudaException if the driver reports an error
   */
  long ctxGetLimit(int device, int limit);

  /**
   * Sets a resource limit of the device's context, CUlimit (cuCtxSetLimit).
   *
   * @param device the device, from 0
   * @param limit CUlimit
   * @param value the value, of the unit that the limit has
   * @throws CudaException if the driver reports an error
   */
  void ctxSetLimit(int device, int limit, long value);

  /**
   * Has the tool that profiles this process, if there is one, collect from now on; does nothing if
   * it does already (cuProfilerStart).
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  void profilerStart(int device);

  /**
   * Has the tool that profiles this process, if there is one, collect no more; does nothing if it
   * does not (cuProfilerStop).
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  void profilerStop(int device);

  /**
   * {@return free and total memory of a device (cuMemGetInfo)}
   *
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  MemoryInfo memGetInfo(int device);
}
