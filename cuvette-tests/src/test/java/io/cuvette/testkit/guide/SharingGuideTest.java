package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryResource;
import io.cuvette.PageHandles;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.NoSuchElementException;
import java.util.UUID;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * The programs of docs/guide/sharing.md that need no second JVM: two simulated drivers know of each
 * other as little as two processes do.
 */
@EnabledOnOs(OS.LINUX)
class SharingGuideTest {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final DeviceMemoryResourceOptions SHARED =
      DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);

  @TempDir Path folder;

  @CudaTest(simulatedOnly = true)
  void pinnedMemory_isWrittenHereAndReadThere(Subject subject) {
    Cuda cuda = subject.cuda();
    Cuda there = subject.open(options -> options);
    var shared = PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
    try (PinnedMemoryResource resource = new PinnedMemoryResource(cuda, shared);
        PinnedBuffer buffer = resource.allocate(4096)) {
      buffer.stream().synchronize(); // the host waits for the allocation too
      buffer.segment().set(ValueLayout.JAVA_INT, 0, 42);
      assertThat(resource.numaId()).isGreaterThanOrEqualTo(0); // what is shared needs a node
      AllocationHandle handle = resource.allocationHandle();
      BufferDescriptor descriptor = buffer.descriptor();

      // in the other process
      try (PinnedMemoryResource mapped = PinnedMemoryResource.fromAllocationHandle(there, handle);
          PinnedBuffer theirs = mapped.importBuffer(descriptor)) {
        assertThat(theirs.segment().get(ValueLayout.JAVA_INT, 0)).isEqualTo(42);
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void pages_areImportedInOneRange(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaDevice there = subject.open(options -> options).device(0);
    var exportable = ElasticPoolOptions.DEFAULTS.withExportable(true);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, exportable);
        Buffer buffer = pool.allocate(5 << 20);
        PageHandles handles = pool.export(buffer)) { // channel.send(handles)
      buffer.fill((byte) 5);
      cuda.currentDevice().synchronize();
      assertThat(handles.pageBytes()).isEqualTo(6 << 20); // three pages of 2 MiB

      // in the other process, with channel.receivePageHandles(timeout)
      try (DeviceBuffer theirs = there.importBuffer(handles, there.nullStream())) {
        byte[] bytes = new byte[5 << 20];
        theirs.copyTo(MemorySegment.ofArray(bytes));
        assertThat(bytes).containsOnly(5);
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void registry_givesTheResourceThatIsThere(Subject subject) {
    CudaDevice here = subject.cuda().device(0);
    Cuda cuda = subject.open(options -> options);
    CudaDevice device = cuda.device(0);
    try (DeviceMemoryResource resource = new DeviceMemoryResource(here, SHARED)) {
      AllocationHandle handle = resource.allocationHandle();
      try (var mapped = DeviceMemoryResource.fromAllocationHandle(device, handle)) {
        UUID uuid = mapped.uuid().orElseThrow(); // the exporter's
        assertThat(DeviceMemoryResource.fromAllocationHandle(device, handle)).isSameAs(mapped);
        assertThat(DeviceMemoryResource.fromRegistry(cuda, uuid)).isSameAs(mapped);
      }
      assertThatThrownBy(() -> DeviceMemoryResource.fromRegistry(cuda, handle.uuid().orElseThrow()))
          .isInstanceOf(NoSuchElementException.class); // it was closed

      int descriptor = handle.descriptor(); // it came some other way, and stays the caller's
      try (var mapped = DeviceMemoryResource.fromAllocationHandle(device, descriptor)) {
        assertThat(mapped.uuid()).isEmpty();
        assertThat(mapped.register(new UUID(1, 2))).isSameAs(mapped);
        assertThat(DeviceMemoryResource.fromRegistry(cuda, new UUID(1, 2))).isSameAs(mapped);
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void plainMemory_isImportedByADevice(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaDevice there = subject.open(options -> options).device(0);
    try (Buffer plain = MemoryResource.direct().allocate(2 << 20, cuda.currentStream())) {
      plain.fill((byte) 5);
      BufferDescriptor descriptor = plain.slice(4096, 100).descriptor();
      assertThat(descriptor.kind()).isEqualTo(BufferDescriptor.Kind.PLAIN);
      assertThat(descriptor.offset()).isEqualTo(4096); // in the whole allocation

      // in the other process
      try (DeviceBuffer theirs = there.importBuffer(descriptor)) {
        byte[] bytes = new byte[100];
        theirs.copyTo(MemorySegment.ofArray(bytes));
        assertThat(bytes).containsOnly(5);
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void refusals_sayWhatCouldBeDone(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaDevice there = subject.open(options -> options).device(0);
    try (ManagedBuffer managed = cuda.allocateManaged(64);
        DeviceMemoryResource resource = new DeviceMemoryResource(cuda.device(0), SHARED);
        DeviceMemoryResource mapped =
            DeviceMemoryResource.fromAllocationHandle(there, resource.allocationHandle())) {
      assertThatThrownBy(() -> managed.descriptor())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("cannot be shared between processes");
      assertThatThrownBy(() -> mapped.allocate(64))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("is mapped");
      assertThatThrownBy(() -> BufferDescriptor.fromBytes(new byte[] {1, 2, 3}))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @CudaTest(simulatedOnly = true)
  void message_carriesBytesAndHandles(Subject subject) {
    try (DeviceMemoryResource resource =
            new DeviceMemoryResource(subject.cuda().device(0), SHARED);
        IpcListener listener = IpcListener.open(folder.resolve("channel"));
        IpcChannel sender = IpcChannel.connect(listener.path(), PATIENCE);
        IpcChannel receiver = listener.accept(PATIENCE)) {
      byte[] names = "weights".getBytes(StandardCharsets.UTF_8);
      sender.send(names, resource.allocationHandle()); // up to 1 MiB and 16 handles

      try (IpcChannel.Message message = receiver.receiveMessage(PATIENCE)) {
        assertThat(message.bytes()).isEqualTo(names);
        assertThat(message.handles()).hasSize(1); // closed with the message
        assertThat(message.handles().getFirst().uuid()).isEqualTo(resource.uuid());
      }
    }
  }
}
