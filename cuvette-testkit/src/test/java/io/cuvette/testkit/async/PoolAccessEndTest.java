package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.ScriptedDriver;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The end of a pool whose access a driver does not let be taken. */
class PoolAccessEndTest {

  /** Takes no access from device 1, and notes what is asked for at the end of pools. */
  private static void keepAccess(ScriptedDriver driver, CudaStatus refusal) {
    driver.note("memPoolDestroy").note("memPoolSetAccess", PoolAccessEndTest::taken);
    driver.answer(
        "memPoolSetAccess",
        call -> {
          String taken = taken(call);
          if (taken != null && taken.startsWith("take from [1")) {
            throw new CudaException(refusal, call.name(), "device 1 keeps it");
          }
          return call.proceed();
        });
  }

  private static @Nullable String taken(DriverCall call) {
    return call.argument("access", int[].class)[0] == 0
        ? "take from " + Arrays.toString(call.argument("locationIds", int[].class))
        : null;
  }

  private static DeviceMemoryResource withPeers(Cuda cuda) {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    resource.peerAccessibleBy().addAll(List.of(cuda.device(1), cuda.device(2)));
    return resource;
  }

  @CudaTest(devices = 3, simulatedOnly = true)
  void ownerThatCannotLoseItsAccess_isPassedOver(Cuda cuda, ScriptedDriver driver) {
    keepAccess(driver, CudaStatus.INVALID_VALUE);
    withPeers(cuda).close();
    assertThat(driver.notes())
        .containsExactly("take from [1, 2]", "take from [1]", "take from [2]", "memPoolDestroy");
  }

  @CudaTest(devices = 3, simulatedOnly = true, tidy = false)
  void otherFailures_keepThePoolUntilItsCudaEnds(Cuda cuda, ScriptedDriver driver) {
    keepAccess(driver, CudaStatus.NOT_PERMITTED);
    DeviceMemoryResource resource = withPeers(cuda);
    assertThatThrownBy(resource::close).hasMessageContaining("keeps it");
    assertThat(driver.notes()).doesNotContain("memPoolDestroy");
    assertThatThrownBy(cuda::close).hasMessageContaining("keeps it");
    assertThat(driver.notes()).containsOnlyOnce("memPoolDestroy");
  }
}
