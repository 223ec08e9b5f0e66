package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.FaultMode;
import io.cuvette.instrument.Misuse;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.FaultSweep.UseCase;
import io.cuvette.testkit.FaultSweeps.CudaUse;
import io.cuvette.testkit.SweepFinding.Problem;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
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

  @Test
  void whatNoRunCanHave_isRefusedBeforeTheFirst() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> FaultSweeps.onSimulator("devices=none"))
        .withMessage("devices: 'none' (expected: a number from 1 to 32)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> sweep().failingWith(CudaStatus.SUCCESS))
        .withMessage("status: SUCCESS (expected: an error)");
  }

  /** No call of this program can fail, so that each sweep is over at the call it begins with. */
  @Test
  void sweep_stopsAtCallTenThousand_ifNotToldOtherwise() throws Exception {
    int last = 10_000;
    SweepReport atLimit = sweep().sampling(2 * last, last - 1).run(_ -> {});
    assertThat(atLimit.isClean()).isTrue();
    SweepReport behind = sweep().sampling(2 * last, last).run(_ -> {});
    assertThat(behind.runs()).isOne();
    assertThat(behind.findings())
        .hasSize(FaultMode.values().length)
        .allSatisfy(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.NEVER_ENDS);
          assertThat(finding.callNumber()).isEqualTo(last);
        });
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

  /** A driver that fails by itself where the sweep asks it. */
  private SweepReport scripted(String call, CudaStatus status) throws InterruptedException {
    ScriptedDriver script = new ScriptedDriver();
    List<SimulatedDriver> opened = new ArrayList<>();
    SweepReport report =
        FaultSweep.over(
                () -> {
                  opened.add(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
                  return script.fail(call, status).over(opened.getLast());
                })
            .run(driver -> {
              long _ = driver.devices().memGetInfo(0).freeBytes();
            });
    opened.forEach(SimulatedDriver::close);
    return report;
  }

  @Test
  void driverThatDoesNotClose_isAFinding() throws Exception {
    assertThat(scripted("close", CudaStatus.UNKNOWN).findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.LEFT_BEHIND);
          assertThat(finding.detail()).startsWith("the driver does not close: ").contains("close");
        });
  }

  @Test
  void searchForWhatIsLeftThatFails_isAFinding() throws Exception {
    SweepReport report =
        sweep()
            .checking(_ -> {
              throw new IllegalStateException("no search");
            })
            .run(_ -> {});
    assertThat(report.findings())
        .singleElement()
        .satisfies(finding ->
            assertThat(finding.detail())
                .startsWith("the search for leftovers failed: ")
                .contains("no search"));
  }

  /** Both calls come from each of two places, twice. */
  @Test
  void everyOtherError_isTriedOnceForEachPlace() throws Exception {
    SweepReport report =
        sweep()
            .run(driver -> {
              for (int i = 0; i < 2; i++) {
                long _ = driver.devices().memGetInfo(0).freeBytes();
                long _ = elsewhere(driver);
              }
            })
            .orThrow();
    int others = DocumentedErrors.of("memGetInfo").size();
    assertThat(report.calls()).isEqualTo(4);
    assertThat(report.faults()).isEqualTo(4 + 2 * others + 4);
  }

  private static long elsewhere(CudaDriver driver) {
    return driver.devices().memGetInfo(0).freeBytes();
  }

  @Test
  void typesThatAreAllowed_areBesideTheUsualOnes() throws Exception {
    UseCase failing =
        driver -> {
          long _ = driver.devices().memGetInfo(0).freeBytes();
        };
    sweep().allowing(IllegalStateException.class).run(failing).orThrow();
    sweep()
        .allowing(CudaStatus.UNKNOWN, IllegalStateException.class)
        .allowing(ArithmeticException.class)
        .run(failing)
        .orThrow();
  }

  @Test
  void eachMistakeThatIsIgnored_isNoFinding() throws Exception {
    UseCase mistaken =
        driver -> {
          long address = driver.memory().memAlloc(0, 64);
          driver.memory().memFree(0, address);
          swallow(() -> driver.memory().memFree(0, address));
          swallow(() -> driver.events().eventDestroy(0, 0x999));
        };
    FaultSweep sweep = sweep().maximumCalls(1).failingAsUsual();
    assertThat(sweep.run(mistaken).findings())
        .extracting(finding -> finding.detail().split("[ :]", 2)[0])
        .containsExactly("DOUBLE_FREE", "UNKNOWN_HANDLE");
    SweepReport lenient = sweep.ignoring(Misuse.DOUBLE_FREE, Misuse.UNKNOWN_HANDLE).run(mistaken);
    assertThat(lenient.findings())
        .extracting(SweepFinding::problem)
        .doesNotContain(Problem.MISUSED);
  }

  /** In a run whose call is not reached: it is not tried again. */
  @Test
  void runThatHangsBeforeItsCall_isTheLastOfItsMode() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    AtomicReference<Thread> hanging = new AtomicReference<>(Thread.currentThread());
    SweepReport report =
        sweep()
            .patience((run, limit) -> {
              while (!run.join(Duration.ofMillis(1))) {
                if (run.equals(hanging.get()) && !limit.equals(Duration.ofSeconds(5))) {
                  return false;
                }
              }
              return true;
            })
            .run(driver -> {
              if (runs.getAndIncrement() == 1) {
                hanging.set(Thread.currentThread());
                never.await();
              }
              driver.devices().ctxSynchronize(0);
            });
    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.HUNG);
          assertThat(finding.callNumber()).isZero();
        });
    assertThat(report.runs()).as("one, the one that hangs, and two modes").isEqualTo(2 + 2 + 2);
  }

  private static void freesAfterAWait(CudaDriver driver, long address, Runnable free) {
    try {
      driver.transfers().memsetD8Async(0, address, (byte) 1, 64, 0);
      driver.streams().streamSynchronize(0, 0);
    } finally {
      free.run();
    }
  }

  @Test
  void freeOfHostMemory_waitsAsWell() throws Exception {
    sweep()
        .run(driver -> {
          long address = driver.memory().memHostAlloc(0, 64, 0).address();
          freesAfterAWait(driver, address, () -> driver.memory().memFreeHost(0, address));
        })
        .orThrow();
  }

  @Test
  void closeOfOpenedMemory_waitsAsWell() throws Exception {
    assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "memory is shared on Linux alone");
    try (SimulatedDriver exporter = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long shared = exporter.memory().memAlloc(0, 64);
      byte[] handle = exporter.sharing().ipcGetMemHandle(0, shared);
      sweep()
          .run(driver -> {
            long address = driver.sharing().ipcOpenMemHandle(0, handle);
            freesAfterAWait(driver, address, () -> driver.sharing().ipcCloseMemHandle(0, address));
          })
          .orThrow();
      exporter.memory().memFree(0, shared);
    }
  }

  /** Nothing can be waited for on a driver that fails from then on. */
  @Test
  void freeInStreamOrder_isForgivenWhereEveryCallFails_andNotAfterOneFault() throws Exception {
    SweepReport report =
        sweep()
            .run(driver -> {
              long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
              long address = driver.ordered().memAllocAsync(0, 64, stream);
              try {
                driver.transfers().memsetD8Async(0, address, (byte) 1, 64, stream);
                driver.streams().streamSynchronize(0, stream);
              } finally {
                try {
                  driver.ordered().memFreeAsync(0, address, 0);
                } finally {
                  driver.streams().streamDestroy(0, stream);
                }
              }
            });
    assertThat(report.findings())
        .filteredOn(finding -> finding.problem() == Problem.MISUSED)
        .extracting(SweepFinding::mode)
        .isNotEmpty()
        .doesNotContain(FaultMode.FROM_THEN_ON);
  }

  /** As the library opens it, the first call is one of the Cuda's own. */
  @Test
  void whatAProgramLeavesOpenAfterAFault_isNamedBesideItsFailure() throws Exception {
    FaultSweep sweep =
        FaultSweeps.onSimulator("devices=1").failingAsUsual().recoveringFrom(_ -> true);
    CudaUse leaving =
        cuda -> {
          long _ = cuda.device(0).createEvent().handle();
          long _ = cuda.driver().devices().memGetInfo(0).freeBytes();
        };
    assertThat(sweep.run(FaultSweeps.using(leaving)).isClean()).isTrue();
    assertThat(sweep.run(FaultSweeps.usingTidily(leaving)).findings())
        .filteredOn(finding -> finding.call().startsWith("memGetInfo("))
        .isNotEmpty()
        .allSatisfy(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.WRONG_ERROR);
          assertThat(finding.detail())
              .contains("left behind (expected: nothing)", "open: event", "Suppressed: ")
              .contains("Suppressed: io.cuvette.driver.CudaException: memGetInfo(device=0)");
        });
  }
}
