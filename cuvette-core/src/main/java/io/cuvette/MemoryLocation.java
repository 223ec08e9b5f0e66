package io.cuvette;

import io.cuvette.driver.MemLocationType;
import io.cuvette.internal.base.Checks;
import java.util.Objects;

/** Where managed memory can be: a device, the host, or a NUMA node of the host. Immutable. */
public sealed interface MemoryLocation {

  /**
   * {@return the memory of a device}
   *
   * @param device the device
   */
  static MemoryLocation device(CudaDevice device) {
    Objects.requireNonNull(device, "device");
    return new Device(device.id());
  }

  /** {@return the memory of the host} */
  static MemoryLocation host() {
    return Host.HOST;
  }

  /**
   * {@return the memory of one NUMA node of the host}
   *
   * @param node the number of the node, >= 0
   */
  static MemoryLocation hostNuma(int node) {
    return new HostNuma(node);
  }

  /**
   * {@return the memory of the NUMA node that the calling thread runs on when the driver is called;
   * a virtual thread runs on any}
   */
  static MemoryLocation hostNumaCurrent() {
    return HostNumaCurrent.HOST_NUMA_CURRENT;
  }

  /** {@return CUmemLocationType} */
  int type();

  /** {@return the device or node, 0 where it has no meaning} */
  int id();

  /**
   * The memory of a device.
   *
   * @param id the device
   */
  record Device(int id) implements MemoryLocation {
    /** Creates the location. */
    public Device {
      Checks.notNegative("device", id);
    }

    @Override
    public int type() {
      return MemLocationType.DEVICE;
    }
  }

  /**
   * A NUMA node.
   *
   * @param id the node
   */
  record HostNuma(int id) implements MemoryLocation {
    /** Creates the location. */
    public HostNuma {
      Checks.notNegative("NUMA node", id);
    }

    @Override
    public int type() {
      return MemLocationType.HOST_NUMA;
    }
  }

  /** The host. */
  enum Host implements MemoryLocation {
    /** The only one. */
    HOST;

    @Override
    public int type() {
      return MemLocationType.HOST;
    }

    @Override
    public int id() {
      return 0;
    }
  }

  /** The calling thread's NUMA node. */
  enum HostNumaCurrent implements MemoryLocation {
    /** The only one. */
    HOST_NUMA_CURRENT;

    @Override
    public int type() {
      return MemLocationType.HOST_NUMA_CURRENT;
    }

    @Override
    public int id() {
      return 0;
    }
  }
}
