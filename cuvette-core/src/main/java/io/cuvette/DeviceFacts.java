package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.PriorityRange;
import io.cuvette.internal.session.Device;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/** Queries a device about itself. */
abstract class DeviceFacts {
  final Device core;
  final int id;

  DeviceFacts(Device core) {
    this.core = core;
    this.id = core.id();
  }

  /** {@return the number of the device} */
  public final int id() {
    return id;
  }

  /**
   * {@return the name of the device (cuDeviceGetName)}
   *
   * @throws CudaException if the driver reports an error
   */
  public final String name() {
    return core.session().ask(driver -> driver.devices().deviceGetName(id));
  }

  /**
   * {@return the identity of the device, unique over machines (cuDeviceGetUuid)}
   *
   * @throws CudaException if the driver reports an error
   */
  public final UUID uuid() {
    return core.uuid();
  }

  /**
   * {@return the address on the bus, {@code dddd:bb:dd.f} (cuDeviceGetPCIBusId)}
   *
   * @throws CudaException if the driver reports an error
   */
  public final String pciBusId() {
    return core.session().ask(driver -> driver.devices().deviceGetPciBusId(id));
  }

  /** {@return the generation of the instruction set} */
  public final ComputeCapability computeCapability() {
    return core.computeCapability();
  }

  /**
   * {@return an attribute (cuDeviceGetAttribute)}
   *
   * @param attribute the attribute
   * @throws CudaException if the driver reports an error
   */
  public final int attribute(DeviceAttribute attribute) {
    Objects.requireNonNull(attribute, "attribute");
    return attribute(attribute.code());
  }

  /**
   * {@return an attribute (cuDeviceGetAttribute)}
   *
   * @param code CUdevice_attribute
   * @throws CudaException INVALID_VALUE if the driver does not know it
   */
  public final int attribute(int code) {
    return core.attribute(code);
  }

  /** {@return all attributes that the driver knows, queried once} Unmodifiable. */
  public final Map<DeviceAttribute, Integer> attributes() {
    return core.attributes();
  }

  /**
   * {@return the priorities a stream can have; lower is more urgent (cuCtxGetStreamPriorityRange)}
   *
   * @throws CudaException if the driver reports an error
   */
  public final PriorityRange priorityRange() {
    return core.priorityRange();
  }
}
