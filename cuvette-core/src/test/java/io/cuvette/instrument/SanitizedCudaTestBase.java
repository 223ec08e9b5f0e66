package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.Attended;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;

/** What tests of the sanitizer share that use the library: nothing runs before it is waited for. */
abstract class SanitizedCudaTestBase {
  final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDevice("sim:pace=lazy,order=fair,seed=0")
              .withDecorator(Attended::only)
              .withDecorator(driver -> SanitizerDriver.reporting(driver, reports::add)));

  /** Past the library, with addresses that it gave. */
  final CudaDriver driver = cuda.driver();

  final CudaStream stream = newStream();
  final CudaStream other = newStream();

  /** A stream that does not take turns with the null stream. */
  private CudaStream newStream() {
    return cuda.device(0).createStream(StreamOptions.DEFAULTS.withNonBlocking(true));
  }

  @AfterEach
  void close() {
    cuda.close();
    assertSilent();
  }

  void fill(long address, long bytes, CudaStream in) {
    driver.transfers().memsetD8Async(0, address, (byte) 1, bytes, in.handle());
  }

  void assertSilent() {
    assertThat(reports).isEmpty();
  }

  /** One mistake, which it forgets and gives. */
  SanitizerReport assertOnly(Misuse misuse) {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(misuse);
    return reports.removeFirst();
  }
}
