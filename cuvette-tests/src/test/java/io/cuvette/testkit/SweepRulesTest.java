package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.FaultMode;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.FaultSweep.UseCase;
import io.cuvette.testkit.SweepFinding.Problem;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a sweep lets pass, for one status, call or caller alone, and runs that differ a little. */
class SweepRulesTest {
  private final AtomicInteger runs = new AtomicInteger();

  private static FaultSweep sweep() {
    return FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS));
  }

  private static void swallow(Runnable call) {
    try {
      call.run();
    } catch (CudaException e) {
      // the mistake under test
    }
  }

  private static void recovers(CudaDriver driver) {
    swallow(() -> driver.devices().memGetInfo(0));
    swallow(() -> driver.devices().ctxSynchronize(0));
  }

  @ParameterizedTest
  @EnumSource(
      value = CudaStatus.class,
      names = {"OUT_OF_MEMORY", "UNKNOWN"})
  void whatIsAllowedForAStatus_isForThatAlone(CudaStatus status) throws Exception {
    boolean isAllowed = status == CudaStatus.OUT_OF_MEMORY;
    UseCase wrapping =
        driver -> {
          try {
            driver.devices().memGetInfo(0);
          } catch (CudaException e) {
            throw new IllegalStateException(e);
          }
        };
    FaultSweep allowing =
        sweep().allowing(CudaStatus.OUT_OF_MEMORY, IllegalStateException.class).failingWith(status);
    assertThat(allowing.run(wrapping).isClean()).isEqualTo(isAllowed);
    FaultSweep recovering =
        sweep().recoveringFrom(CudaStatus.OUT_OF_MEMORY, "memGetInfo").failingWith(status);
    assertThat(recovering.run(driver -> swallow(() -> driver.devices().memGetInfo(0))).isClean())
        .isEqualTo(isAllowed);
  }

  @Test
  void callerThatMayRecover_mayDoSoFromTheCallsThatAreNamed() throws Exception {
    SweepReport report =
        sweep()
            .failingAsUsual()
            .recoveringWithin("SweepRulesTest.recovers", "memGetInfo")
            .run(SweepRulesTest::recovers);
    assertThat(report.findings())
        .isNotEmpty()
        .allSatisfy(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.SWALLOWED);
          assertThat(finding.call()).startsWith("ctxSynchronize(");
        });
  }

  /** Threads of the library call in another order each time. */
  @Test
  void otherCallOfThatNumber_isNotJudgedWithTheStatusOfTheFirst() throws Exception {
    SweepReport report =
        sweep()
            .run(driver -> {
              if (runs.getAndIncrement() < 2) {
                long _ = driver.devices().memGetInfo(0).freeBytes();
              } else {
                swallow(() -> driver.devices().ctxSynchronize(0));
              }
            });
    assertThat(report.findings())
        .extracting(SweepFinding::mode)
        .isNotEmpty()
        .doesNotContain(FaultMode.ONCE);
  }

  /** The runs 16 to 18 are those that look for call 16. */
  @Test
  void oneOfTheLastCalls_mayBeMissingInAFewRuns() throws Exception {
    SweepReport report =
        sweep()
            .failingAsUsual()
            .run(driver -> {
              int run = runs.getAndIncrement();
              for (int call = 0; call < (16 <= run && run <= 18 ? 15 : 16); call++) {
                driver.devices().ctxSynchronize(0);
              }
            });
    assertThat(report.findings()).isEmpty();
  }

  /** That the driver waits for the stream is no excuse where nothing has failed. */
  @Test
  void freeOfWhatIsInUse_isFoundWithoutAFault() throws Exception {
    SweepReport report =
        sweep()
            .run(driver -> {
              long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
              long address = driver.memory().memAlloc(0, 64);
              driver.transfers().memsetD8Async(0, address, (byte) 1, 64, stream);
              driver.memory().memFree(0, address);
              driver.streams().streamDestroy(0, stream);
            });
    assertThat(report.runs()).isOne();
    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> assertThat(finding.problem()).isEqualTo(Problem.MISUSED));
  }

  @Test
  void leakInARunThatIsNotHit_isOfNoCall() throws Exception {
    SweepReport report =
        sweep()
            .failingAsUsual()
            .run(driver -> {
              if (runs.getAndIncrement() == 2) {
                long _ = driver.events().eventCreate(0, 0);
              } else {
                long _ = driver.devices().memGetInfo(0).freeBytes();
              }
            });
    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.LEFT_BEHIND);
          assertThat(finding.callNumber()).isZero();
          assertThat(finding.call()).isEqualTo("none");
        });
  }
}
