package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.DriverPoolResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import java.util.List;

/** What a resource takes back, and on which stream. */
class DeallocateTest {

  private static List<DriverPoolResource> resources(Cuda cuda) {
    return List.of(
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS),
        new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS));
  }

  @CudaTest
  void emptyBuffers_areTakenBackToo(Cuda cuda) {
    for (DriverPoolResource each : resources(cuda)) {
      try (DriverPoolResource resource = each) {
        Buffer empty = resource.allocate(0);
        resource.deallocate(empty);
        assertThat(empty.isClosed()).isTrue();
        Buffer another = resource.allocate(0);
        resource.deallocate(another.address(), another.byteSize());
        resource.deallocate(another, cuda.currentStream());
        assertThat(another.isClosed()).isTrue();
      }
    }
  }

  @CudaTest
  void withoutAStream_itIsTheBuffersOwn(Cuda cuda) {
    for (DriverPoolResource each : resources(cuda)) {
      try (DriverPoolResource resource = each) {
        Buffer first = resource.allocate(UNEVEN);
        resource.deallocate(first, null);
        assertThat(first.isClosed()).isTrue();
        Buffer second = resource.allocate(UNEVEN);
        resource.deallocate(second.address(), 1000, null);
        assertThat(second.isClosed()).isTrue();
        cuda.currentStream().synchronize();
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void behindTheWorkOfAnotherStream_itIsNotFreedBefore(
      Cuda cuda, @NonBlocking CudaStream other, ScriptedDriver driver) {
    for (DriverPoolResource each : resources(cuda)) {
      try (DriverPoolResource resource = each) {
        Buffer first = resource.allocate(UNEVEN);
        Buffer second = resource.allocate(UNEVEN);
        driver.note("streamWaitEvent", "memFreeAsync");
        Gate gate = Gate.on(other);
        resource.deallocate(first, other);
        resource.deallocate(second.address(), 1000, other);
        assertThat(first.isClosed() && second.isClosed()).isTrue();
        assertThat(driver.takeNotes()).first().asString().startsWith("streamWaitEvent");
        gate.open();
        other.synchronize();
      }
      driver.unscript("streamWaitEvent");
      driver.unscript("memFreeAsync");
    }
  }

  @CudaTest
  void addressOfABufferThatWasTakenBack_isRefused(Cuda cuda) {
    for (DriverPoolResource each : resources(cuda)) {
      try (DriverPoolResource resource = each) {
        Buffer buffer = resource.allocate(UNEVEN);
        long address = buffer.address();
        resource.deallocate(address, 1000);
        assertThatThrownBy(() -> resource.deallocate(address, 1000))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("0x%x".formatted(address));
        cuda.currentStream().synchronize();
      }
    }
  }

  /** Nothing at 0 is the empty buffer; something is not, nor is nothing elsewhere. */
  @CudaTest
  void bytesAtZero_andNoBytesOfABuffer_areRefused(Cuda cuda) {
    for (DriverPoolResource each : resources(cuda)) {
      try (DriverPoolResource resource = each;
          Buffer buffer = resource.allocate(UNEVEN)) {
        assertThatThrownBy(() -> resource.deallocate(0, UNEVEN))
            .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> resource.deallocate(buffer.address(), 0))
            .isInstanceOf(IllegalArgumentException.class);
        assertThat(buffer.isClosed()).isFalse();
      }
      cuda.currentStream().synchronize();
    }
  }

  @CudaTest
  void slices_areRefused_becauseTheyFreeNothing(Cuda cuda) {
    for (DriverPoolResource each : resources(cuda)) {
      try (DriverPoolResource resource = each;
          Buffer buffer = resource.allocate(UNEVEN)) {
        assertThatThrownBy(() -> resource.deallocate(buffer.slice(8)))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("slice")
            .hasMessageContaining("expected: the whole buffer");
        assertThat(buffer.isClosed()).isFalse();
      }
      cuda.currentStream().synchronize();
    }
  }

  @CudaTest
  void streamOfAnotherCuda_isCalledThat(Subject subject, Cuda cuda, DeviceMemoryResource resource) {
    Cuda other = subject.open(options -> options);
    CudaStream foreign = other.currentStream();
    assertThatThrownBy(() -> resource.allocate(1, foreign))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("another Cuda");
    Buffer buffer = resource.allocate(1);
    assertThatThrownBy(() -> resource.deallocate(buffer, foreign))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("another Cuda");
    for (long bytes : new long[] {0, 1}) {
      long address = bytes == 0 ? 0 : buffer.address();
      assertThatThrownBy(() -> resource.deallocate(address, bytes, foreign))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("another Cuda");
    }
    assertThat(buffer.isClosed()).isFalse();
    buffer.close();
    cuda.currentStream().synchronize();
  }

  @CudaTest(devices = 2)
  void streamOfAnotherDevice_getsNoMemory_howeverLittle(
      DeviceMemoryResource resource, @OnDevice(1) CudaStream foreign) {
    for (long bytes : new long[] {0, 1, UNEVEN}) {
      assertThatThrownBy(() -> resource.allocate(bytes, foreign))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("%s (expected: a stream of device 0)", foreign);
    }
    assertThat(resource.attributes().usedMemCurrent()).isZero();
  }

  /** Also if it has no bytes, of which every resource would be the right one. */
  @CudaTest
  void bufferOfAnotherCuda_isRefused_howeverSmall(Subject subject, Cuda cuda) {
    Cuda other = subject.open(options -> options);
    for (DriverPoolResource each : resources(cuda)) {
      try (DriverPoolResource resource = each) {
        for (long bytes : new long[] {0, UNEVEN}) {
          for (Buffer foreign : List.of(other.allocate(bytes), other.allocatePinned(bytes))) {
            assertThatThrownBy(() -> resource.deallocate(foreign))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("is no buffer of");
            assertThat(foreign.isClosed()).isFalse();
            foreign.close();
          }
        }
      }
    }
  }

  /** Where nothing is taken back, and nothing could be. */
  @CudaTest(simulatedOnly = true)
  void closedCuda_isWhatIsNamed_whateverIsGivenBack(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    List<DriverPoolResource> all = resources(cuda);
    long address = all.getFirst().allocate(UNEVEN).address();
    cuda.close();
    for (DriverPoolResource resource : all) {
      for (long[] memory : new long[][] {{0, 0}, {0, 1}, {address, 1000}, {address, 1}}) {
        assertThatThrownBy(() -> resource.deallocate(memory[0], memory[1]))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("closed");
        assertThatThrownBy(() -> resource.deallocate(memory[0], memory[1], null))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("closed");
      }
    }
  }
}
