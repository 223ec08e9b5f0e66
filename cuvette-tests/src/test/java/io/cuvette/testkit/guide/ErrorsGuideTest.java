package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.LeakLevel;
import io.cuvette.LeakReport;
import io.cuvette.OpenObject;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** The programs of docs/guide/errors.md. */
class ErrorsGuideTest {
  @CudaTest
  void driverErrors_haveStatusAndCall(Cuda cuda) {
    try {
      cuda.deviceByPciBusId("nowhere");
      throw new AssertionError("an address that is none");
    } catch (CudaException e) {
      assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE);
      assertThat(e.code()).isEqualTo(1);
      assertThat(e.call()).startsWith("cuDeviceGetByPCIBusId");
    }
  }

  @CudaTest
  void misuse_isFoundBeforeTheDriverIsCalled(Cuda cuda) {
    assertThatThrownBy(() -> cuda.allocate(-5))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("bytes: -5");
    Buffer buffer = cuda.allocate(8);
    assertThatThrownBy(() -> buffer.slice(4, 5)).isInstanceOf(IndexOutOfBoundsException.class);
    buffer.close();
    buffer.close(); // the second time does nothing
    assertThatThrownBy(() -> buffer.fill((byte) 0))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageEndingWith("is closed");
  }

  @Test
  void forgottenBuffers_areReportedToAListener() {
    List<LeakReport> leaks = new CopyOnWriteArrayList<>();
    CudaOptions options =
        CudaOptions.simulated().withLeakLevel(LeakLevel.FULL).withLeakListener(leaks::add);
    try (Cuda cuda = Cuda.open(options)) {
      cuda.allocate(64).close();
      assertThat(cuda.leaksFound()).isEqualTo(0);
      assertThat(leaks).isEmpty();
    }
  }

  @Test
  void openObjects_areListedWithTheirPlace() {
    CudaOptions full = CudaOptions.simulated().withLeakLevel(LeakLevel.FULL);
    try (Cuda cuda = Cuda.open(full)) {
      try (Buffer _ = cuda.allocate(64)) {
        OpenObject open = cuda.openObjects().getLast();
        assertThat(open.what()).startsWith("buffer of 64 bytes");
        assertThat(open.site().getStackTrace()).isNotEmpty(); // the call of allocate
      }
      cuda.defaultMemoryPool().freeAllBlocks();
      assertThat(cuda.openObjects()).isEmpty();
    }
  }
}
