package io.cuvette.examples;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.MemoryLocation;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;

/** Managed memory: one address for all, moved where it is used, with advice. Stateless. */
public final class ManagedExample {
  private static final long MIB = 1L << 20;

  private ManagedExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    CudaDevice device = cuda.currentDevice();
    boolean shared = device.attribute(DeviceAttribute.CONCURRENT_MANAGED_ACCESS) != 0;
    try (CudaStream stream = device.createStream();
        ManagedBuffer buffer = cuda.allocateManaged(4 * MIB)) {
      sameAddress(buffer, stream, out);
      if (shared) {
        prefetch(buffer, stream, out);
        advise(buffer, out);
      } else {
        out.say("This device moves managed memory on demand only, so nothing to say about it.");
      }
      pooled(cuda, stream, out);
    }
  }

  private static void sameAddress(ManagedBuffer buffer, CudaStream stream, Output out) {
    out.say("The device writes, the host reads at the same address; no copy is needed.");
    buffer.fillInts(42, stream);
    stream.synchronize();
    int last = buffer.segment().get(ValueLayout.JAVA_INT, buffer.byteSize() - Integer.BYTES);
    out.check("the last int", last, 42);
  }

  private static void prefetch(ManagedBuffer buffer, CudaStream stream, Output out) {
    out.say("Moving it ahead of its use saves the faults; a slice moves alone.");
    MemoryLocation device = MemoryLocation.device(buffer.device());
    ManagedBuffer half = buffer.slice(0, 2 * MIB);
    half.prefetch(device, stream);
    stream.synchronize();
    out.check("first half, last moved to", half.lastPrefetchLocation(), Optional.of(device));
    out.check("the other half", buffer.slice(2 * MIB).lastPrefetchLocation(), Optional.empty());
    buffer.prefetch(MemoryLocation.host(), stream);
    stream.synchronize();
    out.check("all of it", buffer.lastPrefetchLocation(), Optional.of(MemoryLocation.host()));
    out.check("what it holds", buffer.segment().get(ValueLayout.JAVA_INT, 0), 42);
  }

  private static void advise(ManagedBuffer buffer, Output out) {
    out.say("Advice can be read back, and holds on exactly the range it was given for.");
    MemoryLocation device = MemoryLocation.device(buffer.device());
    ManagedBuffer part = buffer.slice(2 * MIB);
    part.setReadMostly(true);
    out.check("mostly read, the part", part.isReadMostly(), true);
    out.check("mostly read, all", buffer.isReadMostly(), false);
    buffer.setPreferredLocation(device);
    out.check("preferred location", buffer.preferredLocation(), Optional.of(device));
    buffer.clearPreferredLocation();
    out.check("and none", buffer.preferredLocation(), Optional.empty());
    buffer.accessedBy().add(device);
    buffer.accessedBy().add(MemoryLocation.host());
    out.check(
        "accessed by", List.copyOf(buffer.accessedBy()), List.of(device, MemoryLocation.host()));
    buffer.setAccessedBy(List.of());
    out.check("accessed by nobody", buffer.accessedBy().isEmpty(), true);
  }

  private static void pooled(Cuda cuda, CudaStream stream, Output out) {
    out.say("Pools of the driver give it in order of a stream (CUDA 13), with a preference:");
    MemoryLocation device = MemoryLocation.device(stream.device());
    ManagedMemoryResourceOptions options =
        ManagedMemoryResourceOptions.DEFAULTS.withPreferredLocation(device);
    ManagedMemoryResource made;
    try {
      made = new ManagedMemoryResource(cuda, options);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.NOT_SUPPORTED
          && e.status() != CudaStatus.CALL_REQUIRES_NEWER_DRIVER) {
        throw e;
      }
      out.say(String.valueOf(e.getMessage()));
      return;
    }
    try (ManagedMemoryResource resource = made) {
      out.check("preferred", resource.preferredLocation(), Optional.of(device));
      out.check("isManaged()", resource.isManaged(), true);
      try (ManagedBuffer pooled = resource.allocate(MIB, stream)) {
        pooled.fill((byte) 7, stream);
        stream.synchronize();
        out.check("read by the host", pooled.segment().get(ValueLayout.JAVA_BYTE, 99), (byte) 7);
      }
      stream.synchronize();
    }
  }
}
