package io.cuvette.benchmarks.facts;

import io.cuvette.Buffer;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.DriverPoolResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;
import io.cuvette.driver.CudaDriver;

/** How each kind of resource rejects bad input. Not thread-safe. */
final class ErrorFacts {
  private static final int THREAD_LOCAL = 1;

  private final Ways ways;
  private final Recorder recorder;

  ErrorFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run() {
    for (Kind kind : Kind.values()) {
      recorder.outcome("error." + kind + ".all", () -> refusals(kind));
    }
    for (int node : new int[] {-1, Ways.NOT_A_DEVICE}) {
      for (How how : new How[] {How.OWN, How.IPC}) {
        PinnedMemoryResourceOptions ipc =
            PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(how.ipc());
        recorder.outcome(
            "error.pinned." + how + ".numa_id." + node,
            () -> new PinnedMemoryResource(ways.cuda(), ipc.withNumaId(node)));
      }
    }
    maximum("device", Kind.DEVICE);
    maximum("pinned", Kind.PINNED);
    recorder.outcome(
        "error.device.no_such_device",
        () ->
            new DeviceMemoryResource(
                ways.cuda().device(Ways.NOT_A_DEVICE), DeviceMemoryResourceOptions.DEFAULTS));
  }

  private void maximum(String name, Kind kind) {
    recorder.outcome("error." + name + ".max_size.negative", () -> withMaximum(kind, -1));
    recorder.outcome(
        "error." + name + ".max_size.exceeded",
        () -> withMaximum(kind, 32 * Ways.MIB).allocate(256 * Ways.MIB, ways.stream()));
  }

  private DriverPoolResource withMaximum(Kind kind, long bytes) {
    return kind == Kind.DEVICE
        ? new DeviceMemoryResource(
            ways.device(), DeviceMemoryResourceOptions.DEFAULTS.withMaxBytes(bytes))
        : new PinnedMemoryResource(
            ways.cuda(), PinnedMemoryResourceOptions.DEFAULTS.withMaxBytes(bytes));
  }

  private void refusals(Kind kind) throws Exception {
    String prefix = "error." + kind;
    try (DriverPoolResource resource = ways.make(kind, How.OWN)) {
      recorder.outcome(prefix + ".allocate.negative", () -> resource.allocate(-1, ways.stream()));
      recorder.outcome(prefix + ".allocate.huge", () -> resource.allocate(1L << 60, ways.stream()));
      recorder.outcome(
          prefix + ".allocate.without_stream", () -> resource.allocate(Ways.MIB).close());
      capturing(prefix, resource);
      if (kind != Kind.MANAGED) {
        new DescriptorFacts(ways, recorder).withoutIpc(prefix, kind, resource);
      }
    }
  }

  private void capturing(String prefix, DriverPoolResource resource) {
    CudaDevice device = ways.device();
    CudaDriver driver = ways.cuda().driver();
    try (CudaStream busy = device.createStream()) {
      driver.captures().streamBeginCapture(device.id(), busy.handle(), THREAD_LOCAL);
      recorder.outcome(
          prefix + ".allocate.capturing",
          () -> {
            Buffer buffer = resource.allocate(Ways.MIB, busy);
            buffer.close();
          });
      recorder.outcome(
          prefix + ".allocate.capturing.capture_lives",
          () ->
              driver
                  .graphs()
                  .graphDestroy(driver.captures().streamEndCapture(device.id(), busy.handle())));
    }
  }
}
