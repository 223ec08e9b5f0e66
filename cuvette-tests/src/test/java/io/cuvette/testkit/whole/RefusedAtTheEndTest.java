package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryResource;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A Cuda that ends asks twice for what the driver refuses: nobody can ask after it. */
@Timeout(60)
class RefusedAtTheEndTest {

  @ParameterizedTest
  @CsvSource({
    "memFree, address",
    "memFreeHost, address",
    "memFreeAsync, address",
    "streamDestroy, stream",
    "eventDestroy, event"
  })
  void whatTheDriverRefusesOnce_isNotLeft(String name, String of) throws Exception {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (ScriptedDriver script = new ScriptedDriver()) {
      Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(script::over));
      use(cuda);
      Set<Long> refused = ConcurrentHashMap.newKeySet();
      script.answer(
          name,
          call -> {
            if (refused.add(call.number(of))) {
              throw new CudaException(CudaStatus.NOT_PERMITTED, name, "scripted by the test");
            }
            return call.proceed();
          });
      assertThatThrownBy(cuda::close)
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_PERMITTED));
      assertThat(simulator.report()).isEmpty();
    }
  }

  /** Leaves cached memory, and one of each thing that the Cuda has to end. */
  private static void use(Cuda cuda) throws Exception {
    var stream = cuda.device(0).createStream();
    var _ = stream.record();
    cuda.allocate(64, stream).close();
    cuda.allocatePinned(64).close();
    var _ = MemoryResource.async().allocate(64, stream);
    var _ = MemoryResource.direct().allocate(64, stream);
    stream.addCallback(() -> {}).get(40, TimeUnit.SECONDS);
  }
}
