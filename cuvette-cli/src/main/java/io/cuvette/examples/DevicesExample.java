package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.Scope;
import java.util.List;
import java.util.TreeSet;

/** The devices, which of them is current, and copies between them. Stateless. */
public final class DevicesExample {
  private DevicesExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    out.show("Cuda.isAvailable(), a GPU", Cuda.isAvailable());
    out.show("driver version", cuda.driverVersion());
    out.show("runtime version", cuda.runtimeVersion());
    out.check("current device", cuda.currentDevice().id(), 0);
    for (CudaDevice device : cuda.devices()) {
      describe(cuda, device, out);
    }
    CudaDevice last = cuda.devices().getLast();
    out.say("Inside a scope another device is current; after it the one before is again.");
    try (Scope _ = last.use();
        Buffer buffer = cuda.allocate(1000)) {
      out.check("current device in the scope", cuda.currentDevice(), last);
      out.check("device of the buffer", buffer.device(), last);
    }
    out.check("current device after it", cuda.currentDevice().id(), 0);
    out.check("sorted", List.copyOf(new TreeSet<>(cuda.devices())), cuda.devices());
    if (cuda.deviceCount() > 1) {
      copyBetween(cuda, out);
    } else {
      out.say("One device only, so no copies between two (try --device sim:devices=2).");
    }
  }

  private static void describe(Cuda cuda, CudaDevice device, Output out) {
    out.say(device + ": " + device.name());
    out.show("compute capability", device.computeCapability());
    out.show("uuid", device.uuid());
    String bus = device.pciBusId();
    out.check("found by " + bus, cuda.deviceByPciBusId(bus), device);
    out.check("total memory", device.memoryInfo().totalBytes(), device.totalBytes());
    device.synchronize();
  }

  private static void copyBetween(Cuda cuda, Output out) {
    CudaDevice one = cuda.device(0);
    CudaDevice two = cuda.device(1);
    out.show("device 1 can address memory of device 0", two.canAccess(one));
    try (Buffer source = cuda.allocate(64, one.nullStream());
        Buffer target = cuda.allocate(64, two.nullStream())) {
      source.fill((byte) 7);
      target.copyFrom(source);
      byte[] back = new byte[64];
      target.copyTo(java.lang.foreign.MemorySegment.ofArray(back));
      out.check("a byte that went over both devices", back[63], (byte) 7);
    }
  }
}
