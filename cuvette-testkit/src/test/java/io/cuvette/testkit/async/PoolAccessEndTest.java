package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The end of a pool whose access a driver does not let be taken. */
class PoolAccessEndTest {

  /** Takes no access from device 1, and writes down what it is asked for at the end of pools. */
  private static final class Stubborn extends ForwardingDriver {
    private final List<String> calls = new ArrayList<>();
    private final CudaStatus refusal;

    Stubborn(CudaDriver driver, CudaStatus refusal) {
      super(driver);
      this.refusal = refusal;
    }

    @Override
    public void memPoolSetAccess(long pool, int locationType, int[] locationIds, int... access) {
      if (access[0] == 0) {
        calls.add("take from " + Arrays.toString(locationIds));
        if (locationIds[0] == 1) {
          throw new CudaException(refusal, "cuMemPoolSetAccess", "device 1 keeps it");
        }
      }
      super.memPoolSetAccess(pool, locationType, locationIds, access);
    }

    @Override
    public void memPoolDestroy(long pool) {
      calls.add("destroy");
      super.memPoolDestroy(pool);
    }
  }

  private static Stubborn stubborn(Subject subject, CudaStatus refusal, Cuda[] opened) {
    Stubborn[] made = new Stubborn[1];
    opened[0] =
        subject.open(
            options -> options.withDecorator(driver -> made[0] = new Stubborn(driver, refusal)));
    return made[0];
  }

  private static DeviceMemoryResource withPeers(Cuda cuda) {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    resource.peerAccessibleBy().addAll(List.of(cuda.device(1), cuda.device(2)));
    return resource;
  }

  @CudaTest(devices = 3, simulatedOnly = true)
  void ownerThatCannotLoseItsAccess_isPassedOver(Subject subject) {
    Cuda[] cuda = new Cuda[1];
    Stubborn driver = stubborn(subject, CudaStatus.INVALID_VALUE, cuda);
    withPeers(cuda[0]).close();
    assertThat(driver.calls)
        .containsExactly("take from [1, 2]", "take from [1]", "take from [2]", "destroy");
  }

  @CudaTest(devices = 3, simulatedOnly = true, tidy = false)
  void otherFailures_keepThePoolUntilItsCudaEnds(Subject subject) {
    Cuda[] cuda = new Cuda[1];
    Stubborn driver = stubborn(subject, CudaStatus.NOT_PERMITTED, cuda);
    DeviceMemoryResource resource = withPeers(cuda[0]);
    assertThatThrownBy(resource::close).hasMessageContaining("keeps it");
    assertThat(driver.calls).doesNotContain("destroy");
    assertThatThrownBy(cuda[0]::close).hasMessageContaining("keeps it");
    assertThat(driver.calls).containsOnlyOnce("destroy");
  }
}
