package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** What is no pool, no buffer of the pool, or not shared at all, is refused with its reason. */
class PoolRefusalsTest extends TwoProcesses {
  private static final int KIND_AT = 6;
  private static final int OFFSET_AT = 8;
  private static final int SIZE_AT = 16;
  private static final int DEVICE_AT = 40;
  private static final int PAYLOAD_AT = 56;

  @Test
  void descriptorOfNoPool_isExplained() {
    DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
    int file = calls.memoryFile("no pool", 4096);
    try {
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(there(), file))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("no memory pool");
    } finally {
      calls.close(file);
    }
  }

  @Test
  void poolOfADeviceThatIsNotSeenHere_isExplained() {
    SimulatedDriver few = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (Cuda one = Cuda.open(CudaOptions.DEFAULTS.withDriver(few));
        var second = new DeviceMemoryResource(exporter.device(1), SHARED)) {
      AllocationHandle handle = second.allocationHandle();
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(one.device(0), handle))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_DEVICE))
          .hasMessageContaining("does not see");
    }
    assertThat(few.report()).isEmpty();
  }

  @Test
  void bufferOfAnotherPool_isInvalid() {
    try (DeviceMemoryResource one = shared();
        DeviceMemoryResource two = shared();
        DeviceBuffer ofOne = one.allocate(100);
        DeviceMemoryResource mappedTwo = mapped(two)) {
      assertThatThrownBy(() -> mappedTwo.importBuffer(ofOne.descriptor()))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE))
          .hasMessageContaining("another pool");
    }
  }

  @Test
  void hostPoolAsDeviceResource_isRefusedAtTheFirstBuffer() {
    try (PinnedMemoryResource pinned = new PinnedMemoryResource(exporter, PINNED);
        PinnedBuffer ours = pinned.allocate(100)) {
      try (AllocationHandle nameless =
              AllocationHandle.of(
                  DescriptorCalls.find()
                      .orElseThrow()
                      .duplicate(pinned.allocationHandle().descriptor()));
          DeviceMemoryResource wrong =
              DeviceMemoryResource.fromAllocationHandle(there(), nameless)) {
        assertThatThrownBy(() -> wrong.importBuffer(ours.descriptor()))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("HOST_POOL");
      }
    }
  }

  @Test
  void poolOfAnotherDevice_isRefused() {
    try (DeviceMemoryResource resource = shared()) {
      assertThatThrownBy(() ->
              DeviceMemoryResource.fromAllocationHandle(
                  importer.device(1), resource.allocationHandle()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device 1");
      try (DeviceMemoryResource mapped = mapped(resource)) {
        UUID uuid = resource.uuid().orElseThrow();
        assertThat(DeviceMemoryResource.fromRegistry(there(), uuid)).isSameAs(mapped);
        assertThatThrownBy(() -> DeviceMemoryResource.fromRegistry(importer.device(1), uuid))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("device 1");
      }
    }
  }

  /** A peer that makes things up knows the checksum too. */
  @Test
  void forgedDescriptor_isRefused_andTheMappingGivenBack() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(1000);
        DeviceMemoryResource mapped = mapped(resource)) {
      byte[] honest = ours.descriptor().toBytes();
      for (BufferDescriptor forged :
          List.of(
              forge(honest, bytes -> bytes.putLong(SIZE_AT, 1L << 40)),
              forge(honest, bytes -> bytes.putLong(OFFSET_AT, 1 << 20)),
              forge(honest, bytes -> bytes.put(KIND_AT, (byte) 2)),
              forge(honest, bytes -> bytes.put(KIND_AT, (byte) 3)),
              forge(honest, bytes -> putUuid(bytes, importer.device(1).uuid())))) {
        assertThatThrownBy(() -> mapped.importBuffer(forged))
            .as("%s", forged)
            .isInstanceOf(IllegalArgumentException.class);
      }
      BufferDescriptor other = forge(honest, bytes -> putUuid(bytes, importer.device(1).uuid()));
      assertThatThrownBy(() -> mapped.importBuffer(other))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "descriptor: memory of %s (expected: of %s)", importer.device(1), importer.device(0));
      BufferDescriptor payload = forge(honest, bytes -> bytes.putLong(PAYLOAD_AT, 12345));
      assertThatThrownBy(() -> mapped.importBuffer(payload)).isInstanceOf(CudaException.class);
      assertThatThrownBy(() -> mapped.attributes().usedMemCurrent())
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("imported");
      mapped.importBuffer(BufferDescriptor.fromBytes(honest)).close();
    }
  }

  private static void putUuid(ByteBuffer bytes, UUID uuid) {
    bytes.putLong(DEVICE_AT, uuid.getMostSignificantBits());
    bytes.putLong(DEVICE_AT + 8, uuid.getLeastSignificantBits());
  }

  private static BufferDescriptor forge(byte[] honest, Consumer<ByteBuffer> change) {
    ByteBuffer bytes = ByteBuffer.wrap(honest.clone());
    change.accept(bytes);
    CRC32C crc = new CRC32C();
    crc.update(bytes.array(), 0, honest.length - 4);
    bytes.putInt(honest.length - 4, (int) crc.getValue());
    return BufferDescriptor.fromBytes(bytes.array());
  }

  @Test
  void whatCannotBeShared_saysSoAndWhatCan() {
    try (DeviceMemoryResource own =
            new DeviceMemoryResource(here(), DeviceMemoryResourceOptions.DEFAULTS);
        DeviceMemoryResource shared = shared();
        DeviceBuffer unshared = own.allocate(100);
        var managed = exporter.allocateManaged(100);
        var pinned = exporter.allocatePinned(100);
        DeviceBuffer empty = shared.allocate(0);
        DeviceBuffer closed = shared.allocate(100)) {
      closed.close();
      for (Buffer buffer : List.<Buffer>of(unshared, managed, pinned, empty)) {
        assertThatThrownBy(buffer::descriptor)
            .as("%s", buffer)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("ipcEnabled");
      }
      for (Buffer buffer : List.<Buffer>of(managed, pinned)) {
        assertThatThrownBy(buffer::descriptor)
            .hasMessageContaining("it is host or managed memory without a pool of the driver");
      }
      assertThatThrownBy(closed::descriptor)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
      var mapped = mapped(shared);
      assertThatThrownBy(() -> own.importBuffer(unshared.descriptor()))
          .isInstanceOf(IllegalStateException.class);
      mapped.close();
    }
  }

  /** Whatever else is wrong, and nothing is noted of it. */
  @Test
  void whatIsClosed_isRefusedAsThat() {
    DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(100);
        AllocationHandle nameless =
            AllocationHandle.of(calls.duplicate(resource.allocationHandle().descriptor()))) {
      DeviceMemoryResource mapped = DeviceMemoryResource.fromAllocationHandle(there(), nameless);
      mapped.close();
      byte[] honest = ours.descriptor().toBytes();
      BufferDescriptor other = forge(honest, bytes -> bytes.put(KIND_AT, (byte) 2));
      assertIsClosed("closed", () -> mapped.importBuffer(other));
      assertIsClosed("closed", () -> mapped.register(UUID.randomUUID()));
      assertThat(mapped.uuid()).isEmpty();

      AllocationHandle ended = nameless.duplicate();
      ended.close();
      assertIsClosed(
          "AllocationHandle", () -> DeviceMemoryResource.fromAllocationHandle(there(), ended));
      Cuda gone = Cuda.open(CudaOptions.simulated());
      CudaDevice device = gone.device(0);
      gone.close();
      for (AllocationHandle handle : List.of(ended, nameless, resource.allocationHandle())) {
        assertIsClosed(
            "Cuda is closed", () -> DeviceMemoryResource.fromAllocationHandle(device, handle));
        assertIsClosed(
            "Cuda is closed", () -> PinnedMemoryResource.fromAllocationHandle(gone, handle));
      }
    }
  }

  private static void assertIsClosed(String what, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed")
        .hasMessageContaining(what);
  }
}
