package io.cuvette.benchmarks.facts;

import io.cuvette.AllocationHandle;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.DriverPoolResource;
import io.cuvette.IpcChannel;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.benchmarks.facts.Ways.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;

/** Imports what {@link ExporterFacts} sends, in the second process. Not thread-safe. */
final class ImporterFacts {
  private final Ways ways;
  private final Cuda cuda;
  private final Recorder recorder;

  ImporterFacts(Cuda cuda, Recorder recorder) {
    this.ways = new Ways(cuda);
    this.cuda = cuda;
    this.recorder = recorder;
  }

  void run(String socket) {
    try (IpcChannel channel = IpcChannel.connect(Path.of(socket), ExporterFacts.PATIENCE)) {
      for (Kind kind : List.of(Kind.DEVICE, Kind.PINNED)) {
        recorder.outcome("ipc." + kind + ".importer.all", () -> receive(kind, channel));
        channel.send("finished".getBytes(StandardCharsets.UTF_8));
      }
    }
  }

  private void receive(Kind kind, IpcChannel channel) {
    try (AllocationHandle handle = channel.receiveAllocationHandle(ExporterFacts.PATIENCE)) {
      BufferDescriptor large = channel.receiveBufferDescriptor(ExporterFacts.PATIENCE);
      BufferDescriptor small = channel.receiveBufferDescriptor(ExporterFacts.PATIENCE);
      BufferDescriptor foreign = channel.receiveBufferDescriptor(ExporterFacts.PATIENCE);
      UUID uuid = handle.uuid().orElseThrow();
      recorder.outcome(
          "error." + kind + ".from_registry.before_import",
          () -> DescriptorFacts.fromRegistry(kind, cuda, uuid));
      String prefix = "ipc." + kind + ".mapped";
      DriverPoolResource resource =
          recorder.made(prefix + ".made", () -> DescriptorFacts.fromHandle(kind, cuda, handle));
      if (resource != null) {
        resource(prefix, kind, resource, handle);
        new ImportedBufferFacts(ways, recorder, resource).run(kind, large, small, foreign);
        recorder.outcome(prefix + ".close", resource::close);
        recorder.fact(prefix + ".closed.is_handle_owned", resource::isHandleOwned);
      }
      raw("ipc." + kind + ".raw", kind, handle.descriptor());
    }
  }

  private void resource(
      String prefix, Kind kind, DriverPoolResource resource, AllocationHandle handle) {
    recorder.fact(prefix + ".is_mapped", resource::isMapped);
    recorder.fact(prefix + ".is_handle_owned", resource::isHandleOwned);
    recorder.fact(prefix + ".is_ipc_enabled", resource::isIpcEnabled);
    recorder.fact(prefix + ".device_id", resource::deviceId);
    recorder.fact(prefix + ".is_device_accessible", resource::isDeviceAccessible);
    recorder.fact(prefix + ".is_host_accessible", resource::isHostAccessible);
    if (resource instanceof PinnedMemoryResource pinned) {
      recorder.fact(prefix + ".numa_id", pinned::numaId);
    }
    identity(prefix, kind, resource, handle);
    String errors = "error." + kind + ".mapped";
    recorder.outcome(
        errors + ".register_other_uuid",
        () -> DescriptorFacts.registered(resource, UUID.randomUUID()));
    recorder.outcome(errors + ".allocate", () -> resource.allocate(Ways.MIB, ways.stream()));
    recorder.outcome(errors + ".allocation_handle", () -> resource.allocationHandle().descriptor());
    Kind other = kind == Kind.DEVICE ? Kind.PINNED : Kind.DEVICE;
    recorder.outcome(
        errors + ".import_as_other_class", () -> DescriptorFacts.fromHandle(other, cuda, handle));
  }

  private void identity(
      String prefix, Kind kind, DriverPoolResource resource, AllocationHandle handle) {
    UUID uuid = handle.uuid().orElseThrow();
    recorder.fact(prefix + ".uuid_is_the_exporters", () -> resource.uuid().equals(handle.uuid()));
    recorder.fact(
        prefix + ".from_registry_is_it",
        () -> DescriptorFacts.fromRegistry(kind, cuda, uuid).equals(resource));
    recorder.fact(
        prefix + ".second_import_is_it",
        () -> DescriptorFacts.fromHandle(kind, cuda, handle).equals(resource));
    recorder.fact(
        prefix + ".register_again_is_it",
        () -> DescriptorFacts.registered(resource, uuid).equals(resource));
  }

  private void raw(String prefix, Kind kind, int descriptor) {
    DriverPoolResource raw =
        recorder.made(
            prefix + ".made", () -> DescriptorFacts.fromDescriptor(kind, cuda, descriptor));
    if (raw != null) {
      recorder.fact(prefix + ".has_uuid", () -> raw.uuid().isPresent());
      recorder.fact(prefix + ".is_mapped", raw::isMapped);
      recorder.outcome(prefix + ".callers_descriptor_is_open", () -> checkOpen(descriptor));
      raw.close();
    }
  }

  private static void checkOpen(int descriptor) throws IOException {
    Files.readSymbolicLink(Path.of("/proc/self/fd", String.valueOf(descriptor)));
  }
}
