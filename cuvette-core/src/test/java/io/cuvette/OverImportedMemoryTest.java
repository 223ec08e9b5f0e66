package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** Pools whose upstream is memory of another process. */
class OverImportedMemoryTest extends OverFakeSharing {
  @Test
  void blocksOfACachingPool_areMappedIfTheirChunkIs() {
    try (DeviceMemoryResource imported = mapped()) {
      MemoryResource upstream =
          (bytes, stream) -> imported.importBuffer(descriptor(1, 0, bytes), stream);
      try (MemoryPool over = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
          MemoryPool own = new MemoryPool(cuda);
          Buffer block = over.allocate(1000);
          Buffer other = own.allocate(1000)) {
        assertThat(block.isMapped()).isTrue();
        assertThat(other.isMapped()).isFalse();
        assertThat(block.descriptor().byteSize()).isEqualTo(1000);
      }
    }
  }

  /** Devices fill it as their own: it is not host memory, into which they are not let. */
  @Test
  void fillOfImportedMemory_takesNoOtherMemory() {
    try (DeviceMemoryResource imported = mapped();
        Buffer buffer = imported.importBuffer(descriptor(1, 0, 4096))) {
      DeviceMemoryResource own = new DeviceMemoryResource(device);
      long most = own.attributes().usedMemHigh();
      buffer.fill((byte) 7);
      assertThat(own.attributes().usedMemHigh()).isEqualTo(most);
      byte[] bytes = new byte[4096];
      buffer.copyTo(MemorySegment.ofArray(bytes));
      assertThat(bytes).containsOnly(7);
    }
  }

  /** Nobody looks again whether its stream is done: {@link #closeAll} checks that it was freed. */
  @Test
  void memoryThatWaitsForAStream_isFreedAtTheEndOfTheCuda() {
    CudaStream home = device.createStream(StreamOptions.NON_BLOCKING);
    CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
    DeviceMemoryResource imported = mapped();
    Buffer buffer = imported.importBuffer(descriptor(1, 0, 1000), home);
    CountDownLatch gate = gate(other);
    buffer.recordUse(other);
    home.close();
    buffer.close();
    imported.close();
    assertThat(isHeld(other)).isTrue();
    assertThat(cuda.engine().imports().size()).isEqualTo(1);
    assertThat(driver.mappings()).isEqualTo(1);
    gate.countDown();
  }

  @Test
  void memoryOfAStreamThatIsClosedAndBusy_isFreedWhenItsWorkIsDone() {
    CudaStream home = device.createStream(StreamOptions.NON_BLOCKING);
    DeviceMemoryResource imported = mapped();
    Buffer buffer = imported.importBuffer(descriptor(1, 0, 1000), home);
    CountDownLatch gate = gate(home);
    home.close();
    buffer.close();
    assertThat(driver.frees).hasValue(0);
    gate.countDown();
    device.synchronize();
    assertThat(driver.frees).hasValue(1);
    imported.close();
  }

  /** Whichever of them is busy. */
  @Test
  void memoryThatTwoOtherStreamsUse_isFreedBehindBoth() {
    try (DeviceMemoryResource imported = mapped();
        CudaStream home = device.createStream(StreamOptions.NON_BLOCKING);
        CudaStream one = device.createStream(StreamOptions.NON_BLOCKING);
        CudaStream two = device.createStream(StreamOptions.NON_BLOCKING)) {
      for (CudaStream busy : List.of(one, two)) {
        Buffer buffer = imported.importBuffer(descriptor(1, 0, 1000), home);
        CountDownLatch gate = gate(busy);
        buffer.recordUse(one);
        buffer.recordUse(two);
        buffer.close();
        assertThat(isHeld(home)).as("%s is busy", busy).isTrue();
        gate.countDown();
        home.synchronize();
      }
    }
  }
}
