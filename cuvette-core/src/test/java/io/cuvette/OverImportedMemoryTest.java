package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

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
}
