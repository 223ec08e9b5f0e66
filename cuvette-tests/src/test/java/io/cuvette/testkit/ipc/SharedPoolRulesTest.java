package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.PageHandles;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Pools of the driver whose memory other processes can have. */
class SharedPoolRulesTest {
  private static final PoolProperties SHARED = new PoolProperties(1, 1, 1, 0, 0);

  @CudaTest(simulatedOnly = true)
  void poolThatCannotBeMade_isExplained_whereTheDeviceMayBeTheReason(
      CudaStream stream, ScriptedDriver driver) {
    CudaDevice device = stream.device();
    Set<CudaStatus> ofDevice =
        EnumSet.of(
            CudaStatus.NOT_SUPPORTED,
            CudaStatus.NOT_PERMITTED,
            CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
            CudaStatus.INVALID_VALUE);
    var options = DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
    for (CudaStatus status : CudaStatus.values()) {
      if (status == CudaStatus.SUCCESS || status.losesContext()) {
        continue;
      }
      driver.fail("memPoolCreate", status, 1);
      Throwable thrown = catchThrowable(() -> new DeviceMemoryResource(device, options));
      assertThat(String.valueOf(thrown.getMessage()).contains("cannot share such a pool"))
          .as("%s: %s", status, thrown.getMessage())
          .isEqualTo(ofDevice.contains(status));
    }
  }

  @Test
  void memory_tellsThatItCanBeShared_andIsInNoGraph() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long pool = driver.pools().memPoolCreate(SHARED);
      long address = driver.ordered().memAllocFromPoolAsync(0, 64, pool, 0);
      assertThat(driver.memory().pointerGetAttribute(0, 14, address)).isEqualTo(1);
      assertThat(driver.memory().pointerGetAttribute(0, 17, address)).isEqualTo(pool);

      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      driver.captures().streamBeginCapture(0, stream, 2);
      assertThatThrownBy(() -> driver.ordered().memAllocFromPoolAsync(0, 64, pool, stream))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("cannot be captured");
      assertThatThrownBy(() -> driver.captures().streamEndCapture(0, stream))
          .isInstanceOf(CudaException.class);
      driver.ordered().memFreeAsync(0, address, 0);
      driver.streams().streamSynchronize(0, 0);
    }
  }

  /** As nothing that is closed: what is open after a test of this kind is called left behind. */
  @CudaTest(simulatedOnly = true)
  void exports_endWithTheirHandles(Cuda cuda) {
    try (ElasticMemoryPool pages = new ElasticMemoryPool(cuda, ElasticSharingTest.EXPORTABLE);
        Buffer part = pages.allocate(64);
        PageHandles handles = pages.export(part);
        DeviceMemoryResource pool =
            new DeviceMemoryResource(
                cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
        AllocationHandle handle = pool.allocationHandle().duplicate()) {
      assertThat(handles.isClosed()).isFalse();
      assertThat(handle.isClosed()).isFalse();
    }
  }
}
