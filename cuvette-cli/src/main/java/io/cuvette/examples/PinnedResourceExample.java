package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PoolAttributes;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.ValueLayout;
import java.util.List;

/** Page-locked host memory from pools of the driver, placed by it or on a NUMA node. Stateless. */
public final class PinnedResourceExample {
  private static final long MIB = 1L << 20;
  private static final PinnedMemoryResourceOptions DEFAULTS = PinnedMemoryResourceOptions.DEFAULTS;

  /** What a driver or a machine without such pools answers. */
  private static final List<CudaStatus> NO_SUCH_POOL =
      List.of(
          CudaStatus.NOT_SUPPORTED,
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          CudaStatus.INVALID_VALUE);

  private PinnedResourceExample() {}

  /** A use of memory, which makes what it uses. */
  private interface Step {
    void run();
  }

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    out.say("A new pool, placed by the operating system:");
    tried(cuda, out, () -> own(cuda, DEFAULTS, -1, out));
    int node = cuda.currentDevice().attribute(DeviceAttribute.HOST_NUMA_ID);
    if (node >= 0) {
      out.say("A new pool on the NUMA node nearest to the device:");
      tried(cuda, out, () -> own(cuda, DEFAULTS.withNumaId(node), node, out));
    } else {
      out.say("No NUMA node is known to be near the device, so none is asked for.");
    }
    out.say("The pool that is current for host memory, which stays when the resource is closed:");
    tried(cuda, out, () -> current(cuda, out));
  }

  /** Not every driver has pools of host memory; plain page-locked memory is always there. */
  private static void tried(Cuda cuda, Output out, Step step) {
    try {
      step.run();
    } catch (CudaException e) {
      if (!NO_SUCH_POOL.contains(e.status())) {
        throw e;
      }
      out.say(String.valueOf(e.getMessage()));
      out.say("So memory without a pool:");
      try (CudaStream stream = cuda.currentDevice().createStream();
          PinnedBuffer plain = cuda.allocatePinned(MIB)) {
        throughTheDevice(cuda, plain, stream, out);
      }
    }
  }

  private static void own(Cuda cuda, PinnedMemoryResourceOptions options, int node, Output out) {
    try (PinnedMemoryResource resource = new PinnedMemoryResource(cuda, options);
        CudaStream stream = cuda.currentDevice().createStream()) {
      describe(resource, true, node, out);
      PinnedBuffer pinned = resource.allocate(MIB, stream);
      try (pinned) {
        out.check("used", resource.attributes().usedMemCurrent(), MIB);
        throughTheDevice(cuda, pinned, stream, out);
      }
      stream.synchronize();
      PoolAttributes attributes = resource.attributes();
      out.check("used after close", attributes.usedMemCurrent(), 0L);
      out.check("the most used", attributes.usedMemHigh(), MIB);
      resource.deallocate(resource.allocate(MIB, stream));
      stream.synchronize();
      resource.trimTo(0);
      out.check("reserved after trimTo(0)", attributes.reservedMemCurrent(), 0L);
    }
  }

  private static void current(Cuda cuda, Output out) {
    try (PinnedMemoryResource resource = new PinnedMemoryResource(cuda);
        CudaStream stream = cuda.currentDevice().createStream()) {
      describe(resource, false, -1, out);
      try (PinnedBuffer pinned = resource.allocate(MIB, stream)) {
        throughTheDevice(cuda, pinned, stream, out);
      }
      stream.synchronize();
    }
  }

  private static void describe(PinnedMemoryResource resource, boolean owned, int node, Output out) {
    out.check("isHandleOwned()", resource.isHandleOwned(), owned);
    out.check("numaId()", resource.numaId(), node);
    out.check("deviceId()", resource.deviceId(), -1);
    out.check("isDeviceAccessible()", resource.isDeviceAccessible(), true);
    out.check("isHostAccessible()", resource.isHostAccessible(), true);
  }

  private static void throughTheDevice(
      Cuda cuda, PinnedBuffer pinned, CudaStream stream, Output out) {
    try (Buffer device = cuda.allocate(pinned.byteSize(), stream)) {
      stream.synchronize();
      pinned.segment().setAtIndex(ValueLayout.JAVA_INT, 1000, 42);
      device.copyFrom(pinned, stream);
      pinned.fill((byte) 0, stream);
      pinned.copyFrom(device, stream);
      stream.synchronize();
      int back = pinned.segment().getAtIndex(ValueLayout.JAVA_INT, 1000);
      out.check("written by the host, back from the device", back, 42);
    }
  }
}
