package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.share.Importer;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Steps of an import that fail in their middle: after each test nothing is mapped or open. */
class FailedImportTest extends OverFakeSharing {
  @Test
  void bufferThatCannotBeMade_leavesNoMapping() {
    try (DeviceMemoryResource resource = mapped()) {
      assertThatThrownBy(() ->
              Importer.ofPool(
                  descriptor(1, 0, 64),
                  BufferDescriptor.Kind.DEVICE_POOL,
                  cuda.engine().imports(),
                  resource.pool(),
                  cuda.currentStream().core(),
                  new WithoutHeap()))
          .isInstanceOf(OutOfMemoryError.class);
      assertThat(driver.mappings()).isZero();
    }
  }

  @Test
  void originThatCannotBeCompared_leavesNoDescriptor() {
    try (DeviceMemoryResource resource = mapped();
        AllocationHandle handle = handle(null)) {
      assertThat(resource.isMapped()).isTrue();
      int open = descriptors.open().size();
      descriptors.failsToCompare.set(true);
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, handle))
          .isInstanceOf(UncheckedIOException.class);
      assertThat(descriptors.open()).hasSize(open);
    }
  }

  @Test
  void mappingThatNoStreamCanFree_isFreedPlainlyWhenTheCudaEnds() {
    DeviceMemoryResource resource = mapped();
    DeviceBuffer buffer = resource.importBuffer(descriptor(1, 0, 64));
    driver.during =
        call -> {
          driver.failing.put("memFreeAsync", CudaStatus.NOT_PERMITTED);
          return call;
        };
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
    assertThat(buffer.isClosed()).isTrue();
    assertThat(driver.mappings()).isZero();
  }

  @Test
  void descriptorOfAPoolWhoseEndFails_isClosedWithTheCuda() {
    assertThat(mapped().isMapped()).isTrue();
    driver.during =
        call -> {
          if (call.equals("destroyed")) {
            throw new CudaException(CudaStatus.NOT_PERMITTED, "memPoolDestroy", "made to fail");
          }
          return call;
        };
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
    assertThat(descriptors.open()).isEmpty();
  }

  /** The heap has no room for what users would hold. */
  private static final class WithoutHeap implements Faces {
    private final Faces faces = BufferKind.DEVICE;

    @Override
    public Face make(long address, long bytes, OpenStream stream) {
      throw new OutOfMemoryError("the test's");
    }

    @Override
    public void own(Face buffer, Block block) {
      faces.own(buffer, block);
    }

    @Override
    public Memory memory(Face buffer) {
      return faces.memory(buffer);
    }

    @Override
    public boolean isOfDevice() {
      return faces.isOfDevice();
    }

    @Override
    public boolean isOfHost() {
      return faces.isOfHost();
    }

    @Override
    public @Nullable MemorySegment hostMemory(Face buffer) {
      return faces.hostMemory(buffer);
    }

    @Override
    public long hostAddress(Face buffer) {
      return faces.hostAddress(buffer);
    }
  }
}
