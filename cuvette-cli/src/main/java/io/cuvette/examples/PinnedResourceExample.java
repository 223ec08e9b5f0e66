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
import java.util.function.BiConsumer;
import java.util.function.Supplier;

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

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    out.say("A new pool, placed by the operating system:");
    use(
        cuda,
        out,
        () -> new PinnedMemoryResource(cuda, DEFAULTS),
        (pool, stream) -> own(pool, stream, -1, out));
    int node = cuda.currentDevice().attribute(DeviceAttribute.HOST_NUMA_ID);
    if (node >= 0) {
      out.say("A new pool on the NUMA node nearest to the device:");
      use(
          cuda,
          out,
          () -> new PinnedMemoryResource(cuda, DEFAULTS.withNumaId(node)),
          (pool, stream) -> own(pool, stream, node, out));
    } else {
      out.say("No NUMA node is known to be near the device, so none is asked for.");
    }
    out.say("The pool that is current for host memory stays when the resource is closed:");
    use(
        cuda,
        out,
        () -> new PinnedMemoryResource(cuda),
        (pool, stream) -> current(pool, stream, out));
  }

  /** Not every driver has pools of host memory; plain page-locked memory is always there. */
  private static void use(
      Cuda cuda,
      Output out,
      Supplier<PinnedMemoryResource> pool,
      BiConsumer<PinnedMemoryResource, CudaStream> step) {
    try (CudaStream stream = cuda.currentDevice().createStream()) {
      PinnedMemoryResource made;
      try {
        made = pool.get();
      } catch (CudaException e) {
        if (!NO_SUCH_POOL.contains(e.status())) {
          throw e;
        }
        out.say(String.valueOf(e.getMessage()));
        out.say("So memory without a pool:");
        try (PinnedBuffer plain = cuda.allocatePinned(MIB)) {
          throughTheDevice(plain, stream, out);
        }
        return;
      }
      try (made) {
        step.accept(made, stream);
      }
    }
  }

  private static void own(PinnedMemoryResource resource, CudaStream stream, int node, Output out) {
    describe(resource, true, node, out);
    try (PinnedBuffer pinned = resource.allocate(MIB, stream)) {
      out.check("used", resource.attributes().usedMemCurrent(), MIB);
      throughTheDevice(pinned, stream, out);
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

  private static void current(PinnedMemoryResource resource, CudaStream stream, Output out) {
    describe(resource, false, -1, out);
    try (PinnedBuffer pinned = resource.allocate(MIB, stream)) {
      throughTheDevice(pinned, stream, out);
    }
    stream.synchronize();
  }

  private static void describe(PinnedMemoryResource resource, boolean owned, int node, Output out) {
    out.check("isHandleOwned()", resource.isHandleOwned(), owned);
    out.check("numaId()", resource.numaId(), node);
    out.check("deviceId()", resource.deviceId(), -1);
    out.check("isDeviceAccessible()", resource.isDeviceAccessible(), true);
    out.check("isHostAccessible()", resource.isHostAccessible(), true);
  }

  private static void throughTheDevice(PinnedBuffer pinned, CudaStream stream, Output out) {
    try (Buffer device = stream.device().cuda().allocate(pinned.byteSize(), stream)) {
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
