package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolAttributes;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** What an older driver can do is done, and what it cannot do is said. */
class OldDriverTest {

  private static Cuda open(int version) {
    SimulatedOptions options = SimulatedOptions.DEFAULTS.withDriverVersion(version);
    return Cuda.open(CudaOptions.DEFAULTS.withDriver(SimulatedDriver.open(options)));
  }

  private static void refused(ThrowingCallable call, String... texts) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> assertThat(e.status()).isEqualTo(CudaStatus.CALL_REQUIRES_NEWER_DRIVER))
        .hasMessageContainingAll(texts);
  }

  @Test
  void withoutStreamOrderedMemory_everyWayInSaysWhatWorks() {
    try (Cuda cuda = open(11010)) {
      for (ThrowingCallable each :
          List.<ThrowingCallable>of(
              () -> new AsyncMemoryPool(cuda),
              () -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)).allocate(1),
              () -> new DeviceMemoryResource(cuda.device(0)),
              () -> new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS),
              () -> MemoryResource.async().allocate(1, cuda.currentStream()))) {
        refused(each, "11.2", "supports 11.1", "MemoryPool works");
      }
    }
  }

  /** CUDA 11.2 cannot say what a pool holds; that is no reason to keep it. */
  @Test
  void poolWhoseSizeIsUnknown_isFreedAllTheSame() {
    try (Cuda cuda = open(11020);
        AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      long before = cuda.device(0).memoryInfo().freeBytes();
      pool.allocate(64 << 20).close();
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isLessThan(before);
      assertThat(pool.freeAllBlocks()).isEqualTo(-1);
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(before);
    }
  }

  /** What a pool does is older than what it reports. */
  @Test
  void numbersOfAPool_areThereFromCuda113() {
    for (int version : new int[] {11020, 11030}) {
      try (Cuda cuda = open(version);
          var resource =
              new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
        PoolAttributes attributes = resource.attributes();
        attributes.setReleaseThreshold(5);
        assertThat(attributes.releaseThreshold()).isEqualTo(5);
        for (ThrowingCallable each :
            List.<ThrowingCallable>of(
                attributes::reservedMemCurrent,
                attributes::reservedMemHigh,
                attributes::usedMemCurrent,
                attributes::usedMemHigh,
                attributes::resetReservedMemHigh,
                attributes::resetUsedMemHigh)) {
          if (version == 11020) {
            refused(each, "11.2", ">= 11.3");
          } else {
            assertThatCode(each).doesNotThrowAnyException();
          }
        }
      }
    }
  }

  @Test
  void poolWhoseSizeIsRefusedForAnotherReason_isNotTakenForOneOfAnOldDriver() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda =
            Cuda.open(CudaOptions.DEFAULTS.withDriver(driver).withDecorator(script::over));
        AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      pool.allocate(64).close();
      script.fail("memPoolGetAttribute", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(pool::freeAllBlocks)
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_PERMITTED));
      assertThat(pool.freeAllBlocks()).isNotNegative();
    }
  }

  @Test
  void numbersThatAreUnknown_areCalledThat() {
    try (Cuda cuda = open(11020);
        AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      pool.setLimit(MemoryLimit.ofBytes(512));
      assertThatThrownBy(() -> pool.allocate(513))
          .isInstanceOf(OutOfDeviceMemoryException.class)
          .hasMessageMatching("(?s).*\n  allocate\\(bytes=513, stream=[^%]+\\) from [^%]+ live: .*")
          .hasMessageContaining("held=unknown, used=unknown, free=unknown in unknown blocks")
          .hasMessageNotContaining("=-1");
    }
  }

  @Test
  void nodesOfTheHost_needCuda122() {
    try (Cuda cuda = open(12010);
        ManagedBuffer buffer = cuda.allocateManaged(4096)) {
      for (MemoryLocation node :
          List.of(MemoryLocation.hostNuma(0), MemoryLocation.hostNumaCurrent())) {
        refused(() -> buffer.setPreferredLocation(node), "12.1", "12.2");
        refused(() -> buffer.prefetch(node), "12.1", "12.2");
      }
      buffer.setPreferredLocation(MemoryLocation.host());
      assertThat(buffer.preferredLocation()).contains(MemoryLocation.host());
    }
    try (Cuda cuda = open(12020);
        Buffer buffer = cuda.allocateManaged(4096)) {
      ((ManagedBuffer) buffer).prefetch(MemoryLocation.hostNuma(0));
    }
  }
}
