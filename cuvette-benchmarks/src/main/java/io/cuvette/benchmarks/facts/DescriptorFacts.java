package io.cuvette.benchmarks.facts;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DriverPoolResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Stream;

/** Handles and descriptors in one process, good and bad ones. Not thread-safe. */
final class DescriptorFacts {
  private static final Path NOTHING = Path.of("/dev/null");
  private static final Path OPEN = Path.of("/proc/self/fd");
  private static final int SHORT_BYTES = 8;

  private final Ways ways;
  private final Recorder recorder;

  DescriptorFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  /** Both kinds of resources as one. */
  static Buffer imported(DriverPoolResource resource, BufferDescriptor of, Ways ways) {
    return switch (resource) {
      case DeviceMemoryResource device -> device.importBuffer(of, ways.stream());
      case PinnedMemoryResource pinned -> pinned.importBuffer(of, ways.stream());
      default -> throw new IllegalArgumentException(resource + " imports nothing");
    };
  }

  static DriverPoolResource fromRegistry(Kind kind, Cuda cuda, UUID uuid) {
    return kind == Kind.DEVICE
        ? DeviceMemoryResource.fromRegistry(cuda.device(0), uuid)
        : PinnedMemoryResource.fromRegistry(cuda, uuid);
  }

  static DriverPoolResource fromHandle(Kind kind, Cuda cuda, AllocationHandle handle) {
    return kind == Kind.DEVICE
        ? DeviceMemoryResource.fromAllocationHandle(cuda.device(0), handle)
        : PinnedMemoryResource.fromAllocationHandle(cuda, handle);
  }

  static DriverPoolResource fromDescriptor(Kind kind, Cuda cuda, int descriptor) {
    return kind == Kind.DEVICE
        ? DeviceMemoryResource.fromAllocationHandle(cuda.device(0), descriptor)
        : PinnedMemoryResource.fromAllocationHandle(cuda, descriptor);
  }

  static DriverPoolResource registered(DriverPoolResource resource, UUID uuid) {
    return switch (resource) {
      case DeviceMemoryResource device -> device.register(uuid);
      case PinnedMemoryResource pinned -> pinned.register(uuid);
      default -> throw new IllegalArgumentException(resource + " is not registered");
    };
  }

  /** A resource that nobody can import is asked for what others import. */
  void withoutIpc(String prefix, Kind kind, DriverPoolResource resource) throws IOException {
    recorder.outcome(
        prefix + ".from_registry.unknown",
        () -> fromRegistry(kind, ways.cuda(), UUID.randomUUID()));
    numbers(prefix + ".from_allocation_handle", kind);
    recorder.outcome(prefix + ".not_ipc.allocation_handle", resource::allocationHandle);
    try (Buffer buffer = resource.allocate(Ways.MIB, ways.stream());
        DriverPoolResource exporting = ways.make(kind, How.IPC);
        Buffer exported = exporting.allocate(Ways.MIB, ways.stream())) {
      recorder.outcome(prefix + ".not_ipc.descriptor", buffer::descriptor);
      BufferDescriptor descriptor = exported.descriptor();
      recorder.outcome(
          prefix + ".not_ipc.import", () -> imported(resource, descriptor, ways).close());
    }
  }

  private void numbers(String prefix, Kind kind) throws IOException {
    recorder.outcome(prefix + ".negative", () -> fromDescriptor(kind, ways.cuda(), -1));
    Set<Integer> before = devNulls();
    int descriptor;
    try (FileInputStream file = new FileInputStream(NOTHING.toFile())) {
      Set<Integer> now = devNulls();
      now.removeAll(before);
      descriptor = now.iterator().next();
      recorder.outcome(prefix + ".dev_null", () -> fromDescriptor(kind, ways.cuda(), descriptor));
      recorder.outcome(prefix + ".keeps_callers", file::read);
    }
    recorder.outcome(prefix + ".closed", () -> fromDescriptor(kind, ways.cuda(), descriptor));
  }

  /** The open descriptors of the file that does nothing; the JDK does not tell a file's number. */
  private static Set<Integer> devNulls() throws IOException {
    try (Stream<Path> found = Files.list(OPEN)) {
      Set<Integer> numbers = new TreeSet<>();
      found
          .filter(DescriptorFacts::isDevNull)
          .forEach(path -> numbers.add(Integer.valueOf(String.valueOf(path.getFileName()))));
      return numbers;
    }
  }

  private static boolean isDevNull(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).equals(NOTHING);
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }

  void run() {
    recorder.outcome("error.allocation_handle.negative", () -> AllocationHandle.of(-1));
    for (Kind kind : List.of(Kind.DEVICE, Kind.PINNED)) {
      recorder.outcome(
          "error." + kind + ".descriptors.all",
          () -> {
            try (DriverPoolResource resource = ways.make(kind, How.IPC)) {
              descriptors(kind, resource);
              handle(kind, resource);
            }
          });
    }
  }

  private void descriptors(Kind kind, DriverPoolResource resource) {
    String prefix = "error." + kind + ".descriptor";
    recorder.outcome(prefix + ".truncated", () -> imported(resource, new byte[SHORT_BYTES]));
    recorder.outcome(prefix + ".empty", () -> imported(resource, new byte[0]));
    try (Buffer buffer = resource.allocate(Ways.MIB, ways.stream())) {
      byte[] garbage = new byte[buffer.descriptor().toBytes().length];
      Arrays.fill(garbage, (byte) 0xa5);
      recorder.outcome(prefix + ".garbage", () -> imported(resource, garbage));
    }
  }

  private void imported(DriverPoolResource resource, byte[] bytes) {
    imported(resource, BufferDescriptor.fromBytes(bytes), ways).close();
  }

  private void handle(Kind kind, DriverPoolResource resource) {
    UUID uuid = resource.uuid().orElseThrow();
    recorder.outcome("error." + kind + ".register.own", () -> registered(resource, uuid));
    recorder.fact(
        kind + ".register.own.from_registry_is_it",
        () -> Objects.equals(fromRegistry(kind, ways.cuda(), uuid), resource));
    AllocationHandle handle = resource.allocationHandle();
    String prefix = kind + ".allocation_handle";
    recorder.fact(prefix + ".uuid_is_its", () -> handle.uuid().equals(resource.uuid()));
    recorder.fact(
        prefix + ".same_again",
        () -> resource.allocationHandle().descriptor() == handle.descriptor());
    recorder.outcome(prefix + ".close", handle::close);
    recorder.outcome("error." + kind + ".allocation_handle.closed", handle::descriptor);
  }

  void register() {
    for (Kind kind : List.of(Kind.DEVICE, Kind.PINNED)) {
      try (DriverPoolResource resource = ways.make(kind, How.OWN)) {
        recorder.outcome(
            "error." + kind + ".not_ipc.register", () -> registered(resource, UUID.randomUUID()));
      }
    }
  }
}
