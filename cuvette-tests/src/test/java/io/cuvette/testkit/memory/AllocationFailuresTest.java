package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Timeout;

/** What a user sees of each failure of each call that gives memory, and that nothing stays. */
@Timeout(60)
class AllocationFailuresTest {
  private static final int BYTES = 1000;

  /**
   * A way to memory.
   *
   * @param call the call of the driver that gives it
   */
  private record Way(String name, String call, LongFunction<Buffer> allocate) {
    @Override
    public String toString() {
      return name;
    }

    boolean isOfHost() {
      return call.equals("memHostAlloc");
    }
  }

  private static List<Way> ways(Cuda cuda, CudaStream stream) {
    MemoryPool caching = new MemoryPool(cuda);
    PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
    AsyncMemoryPool async = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    MemoryResource direct = MemoryResource.direct();
    MemoryResource managed = MemoryResource.managed();
    MemoryResource current = MemoryResource.async();
    String ofPool = "memAllocFromPoolAsync";
    return List.of(
        new Way("direct", "memAlloc", bytes -> direct.allocate(bytes, stream)),
        new Way("managed", "memAllocManaged", bytes -> managed.allocate(bytes, stream)),
        new Way("direct pinned", "memHostAlloc", bytes -> cuda.directPinned().allocate(bytes)),
        new Way("caching pool", "memAlloc", bytes -> caching.allocate(bytes, stream)),
        new Way("pinned pool", "memHostAlloc", pinned::allocate),
        new Way("current pool", "memAllocAsync", bytes -> current.allocate(bytes, stream)),
        new Way("pool of the driver", ofPool, bytes -> async.allocate(bytes, stream)),
        new Way("resource", ofPool, bytes -> resource.allocate(bytes, stream)));
  }

  /** After an error of the device nothing can be allocated any more. */
  private static List<CudaStatus> statuses() {
    return Arrays.stream(CudaStatus.values())
        .filter(status -> status != CudaStatus.SUCCESS && !status.losesContext())
        .toList();
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void failureOfTheDriver_isTheUsers_withItsStatus(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    for (Way way : ways(cuda, stream)) {
      for (CudaStatus status : statuses()) {
        if (status != CudaStatus.OUT_OF_MEMORY) {
          driver.fail(way.call(), status);
          assertThatThrownBy(() -> way.allocate().apply(BYTES))
              .as("%s, %s", way, status)
              .isInstanceOfSatisfying(
                  CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
              .isNotInstanceOfAny(
                  OutOfDeviceMemoryException.class, OutOfPinnedMemoryException.class)
              .hasMessageContaining("scripted by the test");
        }
      }
      driver.unscript(way.call());
      assertThat(cuda.leaksFound()).isZero();
      way.allocate().apply(BYTES).close();
    }
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void memoryThatIsOut_isSaidWithWhatWasRequested_ofTheClassThatItIs(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    for (Way way : ways(cuda, stream)) {
      driver.fail(way.call(), CudaStatus.OUT_OF_MEMORY);
      var thrown =
          assertThatThrownBy(() -> way.allocate().apply(BYTES))
              .as("%s", way)
              .isInstanceOfSatisfying(
                  CudaException.class,
                  e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
      if (way.isOfHost()) {
        thrown.isInstanceOfSatisfying(
            OutOfPinnedMemoryException.class, e -> assertThat(e.requestedBytes()).isEqualTo(BYTES));
      } else {
        thrown.isInstanceOfSatisfying(
            OutOfDeviceMemoryException.class,
            e -> {
              assertThat(e.requestedBytes()).isEqualTo(BYTES);
              assertThat(e.details().device()).isZero();
            });
      }
      driver.unscript(way.call());
      way.allocate().apply(BYTES).close();
    }
  }

  /** It is out all the same. */
  @CudaTest(simulatedOnly = true, tidy = false)
  void memoryThatIsOut_isSaid_alsoIfTheDriverDoesNotTellWhatIsFree(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    driver.fail("memGetInfo", CudaStatus.NOT_SUPPORTED);
    for (Way way : ways(cuda, stream).subList(0, 3)) {
      driver.fail(way.call(), CudaStatus.OUT_OF_MEMORY);
      assertThatThrownBy(() -> way.allocate().apply(BYTES))
          .as("%s", way)
          .isInstanceOf(
              way.isOfHost() ? OutOfPinnedMemoryException.class : OutOfDeviceMemoryException.class)
          .hasCauseInstanceOf(CudaException.class);
      driver.unscript(way.call());
    }
  }
}
