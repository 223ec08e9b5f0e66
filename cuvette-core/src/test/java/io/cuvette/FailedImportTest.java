package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.share.Importer;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
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
  void mappingWithoutHeapForItsPlace_isGivenBackToTheDriver() {
    try (DeviceMemoryResource resource = mapped()) {
      driver.during =
          call -> {
            if (call.equals("size")) {
              throw new OutOfMemoryError("the test's");
            }
            return call;
          };
      for (BufferDescriptor each :
          List.of(descriptor(1, 0, 64), descriptor(BufferDescriptor.Kind.PLAIN, 9, 0, 64))) {
        assertThatThrownBy(() -> importBuffer(resource, each)).isInstanceOf(OutOfMemoryError.class);
        assertThat(driver.mappings()).isZero();
      }
      driver.during = call -> call;
      resource.importBuffer(descriptor(1, 0, 64)).close();
    }
  }

  private DeviceBuffer importBuffer(DeviceMemoryResource resource, BufferDescriptor descriptor) {
    return descriptor.kind() == BufferDescriptor.Kind.PLAIN
        ? device.importBuffer(descriptor)
        : resource.importBuffer(descriptor);
  }

  @Test
  void mappingWhoseFreeIsDone_isForgotten() {
    try (DeviceMemoryResource resource = mapped();
        CudaStream stream = device.createStream()) {
      CountDownLatch gate = gate(stream);
      resource.importBuffer(descriptor(1, 0, 64), stream).close();
      assertThat(cuda.engine().imports().size()).isEqualTo(1);
      gate.countDown();
      stream.synchronize();
      device.synchronize();
      resource.importBuffer(descriptor(2, 0, 64)).close(); // which looks for what is done
      device.synchronize();
      resource.importBuffer(descriptor(2, 0, 64)).close();
      assertThat(cuda.engine().imports().size()).isLessThanOrEqualTo(1);
    }
  }

  /** It is as long on its way as if the mark behind its free had been made. */
  @Test
  void mappingWhoseFreeIsNotMarked_isKnownUntilItsFreeIsDone() {
    try (DeviceMemoryResource resource = mapped();
        CudaStream stream = device.createStream()) {
      CountDownLatch gate = gate(stream);
      DeviceBuffer buffer = resource.importBuffer(descriptor(1, 0, 64), stream);
      driver.during =
          call -> {
            if (call.equals("free")) {
              driver.failing.put("eventRecord", CudaStatus.UNKNOWN);
            }
            return call;
          };
      buffer.close();
      driver.during = call -> call;
      assertThat(driver.frees).hasValue(1);
      assertThat(driver.failing).as("no mark was made").isEmpty();
      cuda.engine().imports().settle();
      assertThat(cuda.engine().imports().size()).as("its free is not done").isEqualTo(1);
      gate.countDown();
      stream.synchronize();
      cuda.engine().imports().settle();
      assertThat(cuda.engine().imports().size()).isZero();
      resource.importBuffer(descriptor(1, 0, 64), stream).close();
      assertThat(driver.imports).hasValue(2);
    }
  }

  /** A process can have a pool of the host but once, and so not while an old one is there. */
  @Test
  void poolWhoseLastFreeIsDone_isGone_beforeOneIsImported() {
    try (CudaStream stream = device.createStream();
        AllocationHandle handle = handle(null)) {
      driver.importsOnce = true;
      DeviceMemoryResource resource = mapped();
      CountDownLatch gate = gate(stream);
      resource.importBuffer(descriptor(1, 0, 64), stream).close();
      resource.close();
      assertThat(driver.poolsOpen).as("its free is not done").hasValue(1);
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, handle))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("not given back yet");
      gate.countDown();
      cuda.driver().streams().streamSynchronize(device.id(), stream.handle());
      assertThat(driver.poolsOpen).as("nobody has looked").hasValue(1);
      DeviceMemoryResource.fromAllocationHandle(device, handle).close();
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

  /** As of a buffer whose stream is gone, and that another stream used last. */
  @Test
  void mappingThatWaitsAndCannotBeFreedInOrder_isToldByTheEndOfTheCuda() {
    DeviceMemoryResource resource = mapped();
    CudaStream gone = device.createStream();
    CudaStream busy = device.createStream();
    DeviceBuffer buffer = resource.importBuffer(descriptor(1, 0, 64), gone);
    buffer.recordUse(busy);
    CountDownLatch gate = gate(busy);
    gone.close();
    buffer.close();
    assertThat(driver.mappings()).as("it waits").isEqualTo(1);
    gate.countDown();
    driver.failing.put("memFreeAsync", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(cuda::close)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("memFreeAsync");
    assertThat(driver.mappings()).isZero();
  }

  /** What the driver says of itself is not said of the descriptor. */
  @Test
  void importOfAPoolThatFails_isExplainedByItsStatus() {
    for (CudaStatus status : CudaStatus.values()) {
      if (status == CudaStatus.SUCCESS || status.losesContext()) {
        continue;
      }
      driver.failing.put("memPoolImportFromShareableHandle", status);
      String expected =
          switch (status) {
            case OPERATING_SYSTEM, OUT_OF_MEMORY -> "made to fail";
            case ALREADY_MAPPED -> "that this process has imported, or made, and not given back";
            case INVALID_DEVICE -> "whose device this process does not see";
            default -> "gives no memory pool; it must come from the allocationHandle()";
          };
      boolean isOfHandle = !expected.equals("made to fail");
      assertThatThrownBy(this::mapped)
          .as("%s", status)
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
          .hasMessageContaining(expected)
          .satisfies(e -> assertThat(e.getMessage().contains("pool")).isEqualTo(isOfHandle));
      assertThat(driver.failing).isEmpty();
      assertThat(driver.poolsOpen).hasValue(0);
    }
    mapped().close();
  }
}
