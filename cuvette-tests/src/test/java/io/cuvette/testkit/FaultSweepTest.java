package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.FaultMode;
import io.cuvette.instrument.Misuse;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.FaultSweep.UseCase;
import io.cuvette.testkit.SweepFinding.Problem;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class FaultSweepTest {
  private final List<SimulatedDriver> simulators = new ArrayList<>();
  private final AtomicInteger closed = new AtomicInteger();
  private final ScriptedDriver script = new ScriptedDriver();
  private final FaultSweep sweep = FaultSweep.over(this::newDriver);

  private CudaDriver newDriver() {
    simulators.add(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    return script
        .answer("close", call -> closed.incrementAndGet() > 0 ? call.proceed() : null)
        .over(simulators.getLast());
  }

  /** Makes a stream and memory and gives both back, whatever fails: four calls. */
  private static void careful(CudaDriver driver) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    try {
      long address = driver.memory().memAlloc(0, 512);
      driver.memory().memFree(0, address);
    } finally {
      driver.streams().streamDestroy(0, stream);
    }
  }

  @Test
  void carefulUseCase_isClean_andEveryCallWasMadeToFailInAllModes() throws Exception {
    int documented = 0; // besides the one that a call most often fails with
    for (String call : List.of("streamCreateWithPriority", "memAlloc")) {
      documented += DocumentedErrors.of(call).size() - 1;
    }
    for (String call : List.of("memFree", "streamDestroy")) {
      documented += DocumentedErrors.of(call).size();
    }
    SweepReport report = sweep.run(FaultSweepTest::careful).orThrow();

    assertThat(report.calls()).isEqualTo(4);
    assertThat(report.faults()).as("the frees have an effect").isEqualTo(4 + documented + 4 + 2);
    assertThat(report.runs())
        .as("each mode ends with a run that is not hit")
        .isEqualTo(1 + report.faults() + 3);
    assertThat(simulators)
        .hasSize((int) report.runs())
        .allSatisfy(each -> assertThat(each.report()).isEmpty());
    assertThat(closed).hasValue(simulators.size());
  }

  @Test
  void useCaseMayCloseTheDriver_withoutLosingWhatIsLeft() throws Exception {
    SweepReport report =
        sweep.run(driver -> {
          try {
            careful(driver);
          } finally {
            driver.close();
          }
        });

    assertThat(report.isClean()).isTrue();
  }

  /** Nothing can be waited for beside a capture, so the end of its stream comes first. */
  @Test
  void streamThatIsLeftCapturing_isEndedBeforeTheSearchWaits() throws Exception {
    SweepReport report =
        sweep.run(driver -> {
          long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
          try {
            driver.captures().streamBeginCapture(0, stream, 2);
            driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, stream));
          } finally {
            driver.streams().streamDestroy(0, stream);
          }
        });

    assertThat(report.findings())
        .extracting(SweepFinding::mode)
        .doesNotContain(FaultMode.FROM_THEN_ON);
  }

  @Test
  void leakAfterAFault_isFoundWithTheCallAndTheAllocation() throws Exception {
    SweepReport report =
        sweep.run(driver -> {
          long first = driver.memory().memAlloc(0, 100);
          long second = driver.memory().memAlloc(0, 200);
          driver.memory().memFree(0, second);
          driver.memory().memFree(0, first);
        });

    assertThat(report.findings())
        .extracting(SweepFinding::problem)
        .containsOnly(Problem.LEFT_BEHIND);
    assertThat(report.findings())
        .extracting(SweepFinding::mode, SweepFinding::callNumber)
        .as("the second allocation fails, or the first free")
        .containsOnly(
            tuple(FaultMode.ONCE, 2L),
            tuple(FaultMode.ONCE, 3L),
            tuple(FaultMode.FROM_THEN_ON, 2L),
            tuple(FaultMode.FROM_THEN_ON, 3L),
            tuple(FaultMode.AFTER_EFFECT, 1L));
    assertThat(report.findings().getFirst().call()).startsWith("memAlloc(").contains("200");
    assertThat(report.findings().getFirst().detail())
        .contains("of 100 bytes is never freed", "FaultSweepTest");
    assertThatThrownBy(report::orThrow)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining(report.findings().size() + " findings");
  }

  @Test
  void leakWithoutAnyFault_isFoundInTheFirstRun_andNothingElseIsTried() throws Exception {
    SweepReport report = sweep.run(driver -> driver.events().eventCreate(0, 0));

    assertThat(report.runs()).isEqualTo(1);
    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.LEFT_BEHIND);
          assertThat(finding.callNumber()).isZero();
          assertThat(finding.detail()).contains("event 0x").contains("is never freed");
        });
  }

  @Test
  void swallowedError_isFound_unlessRecoveryIsAllowed() throws Exception {
    UseCase swallowing =
        driver -> {
          try {
            driver.memory().memFree(0, driver.memory().memAlloc(0, 1));
          } catch (CudaException e) {
            // the mistake under test
          }
        };

    SweepReport strict = sweep.run(swallowing);
    SweepReport lenient = sweep.recoveringFrom("memAlloc", "memFree").run(swallowing);

    assertThat(strict.findings()).extracting(SweepFinding::problem).containsOnly(Problem.SWALLOWED);
    assertThat(strict.findings()).hasSize((int) strict.faults());
    assertThat(lenient.isClean()).isTrue();
  }

  @Test
  void nameThatNoCallHas_isRefused_andOneGivenTwiceIsNot() {
    for (Function<String[], FaultSweep> names :
        List.<Function<String[], FaultSweep>>of(
            sweep::recoveringFrom,
            given -> sweep.recoveringFrom(CudaStatus.OUT_OF_MEMORY, given),
            given -> sweep.recoveringWithin("DriverStream.isIdle", given))) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> names.apply(new String[] {"memFree", "memAloc"}))
          .withMessage("methodNames[1]: 'memAloc' (expected: a call of CudaDriver)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> names.apply(new String[0]))
          .withMessage("methodNames: none (expected: at least one call of CudaDriver)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> names.apply(new String[] {"memAlloc", "close"}))
          .withMessage("methodNames[1]: 'close' (expected: a call that can fail)");
      assertThat(names.apply(new String[] {"memAlloc", "memAlloc"})).isSameAs(sweep);
    }
  }

  @Test
  void driverThatIsNull_isNamed() {
    assertThatNullPointerException()
        .isThrownBy(() -> FaultSweep.over(() -> null).run(FaultSweepTest::careful))
        .withMessage("drivers.get()");
  }

  private static void swallow(Runnable call) {
    try {
      call.run();
    } catch (CudaException e) {
      // the mistake under test
    }
  }

  private static void asForItself(CudaDriver driver) {
    swallow(() -> driver.devices().memGetInfo(0));
  }

  @Test
  void swallowedError_isFound_whereItIsNotTheCallerThatMayRecover() throws Exception {
    SweepReport report =
        sweep
            .recoveringWithin("FaultSweepTest.asForItself", "memGetInfo")
            .run(driver -> {
              asForItself(driver);
              swallow(() -> driver.devices().memGetInfo(0));
            });

    assertThat(report.findings())
        .isNotEmpty()
        .allSatisfy(finding -> {
          assertThat(finding.callNumber()).isEqualTo(2);
          assertThat(finding.detail()).contains("called by").contains("FaultSweepTest.swallow");
        });
  }

  @Test
  @Timeout(60)
  void hangingUseCase_isInterruptedAndReportedWithItsStack() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch interrupted = new CountDownLatch(2);
    AtomicReference<@Nullable Thread> hanging = new AtomicReference<>();

    SweepReport report =
        sweep
            .timeLimit(Duration.ofMillis(50))
            .patience((run, _) -> endsOrHangs(run, hanging))
            .run(driver -> {
              try {
                driver.devices().deviceGetCount();
              } catch (CudaException e) {
                try {
                  hanging.set(Thread.currentThread());
                  never.await();
                } catch (InterruptedException end) {
                  interrupted.countDown();
                }
              }
            });
    interrupted.await();

    assertThat(report.findings()).hasSize(2);
    assertThat(report.findings()).extracting(SweepFinding::problem).containsOnly(Problem.HUNG);
    assertThat(report.findings().getFirst().detail())
        .contains("no end within 50 ms", "ended when interrupted", "CountDownLatch.await");
    assertThat(report.findings().getFirst().call()).startsWith("deviceGetCount() with ");
  }

  /** The time limit without a clock: whether a run ends, or waits where it says that it hangs. */
  private static boolean endsOrHangs(Thread run, AtomicReference<@Nullable Thread> hanging)
      throws InterruptedException {
    while (!run.join(Duration.ofMillis(1))) {
      if (run.equals(hanging.get()) && run.getState() == Thread.State.WAITING) {
        return false;
      }
    }
    return true;
  }

  @Test
  void errorOfAnotherType_isFound_unlessAllowed() throws Exception {
    UseCase wrapping =
        driver -> {
          try {
            careful(driver);
          } catch (CudaException e) {
            throw new IllegalStateException("wrapped", e);
          }
        };

    SweepReport strict = sweep.run(wrapping);
    SweepReport lenient = sweep.allowing(IllegalStateException.class).run(wrapping);

    assertThat(strict.findings()).hasSize((int) strict.faults());
    assertThat(strict.findings())
        .extracting(SweepFinding::problem)
        .containsOnly(Problem.WRONG_ERROR);
    assertThat(strict.findings().getFirst().detail()).contains("wrapped", "Caused by");
    assertThat(lenient.isClean()).isTrue();
  }

  @Test
  void useCaseThatNeverWorks_isFoundInTheFirstRun() throws Exception {
    SweepReport report =
        sweep.run(_ -> {
          throw new CudaException(CudaStatus.NO_DEVICE.code(), "open");
        });

    assertThat(report.findings())
        .singleElement()
        .extracting(SweepFinding::problem)
        .isEqualTo(Problem.FAILS_WITHOUT_FAULT);
  }

  @Test
  void mistakesTheSanitizerSees_areFindings_unlessIgnored() throws Exception {
    script.answer("memsetD8Async", _ -> null); // the simulated device would refuse it
    UseCase mistaken = driver -> driver.transfers().memsetD8Async(0, 4096, (byte) 1, 8, 0);

    SweepReport strict = sweep.run(mistaken);
    SweepReport lenient = sweep.ignoring(Misuse.UNKNOWN_ADDRESS).run(mistaken);

    assertThat(strict.findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.MISUSED);
          assertThat(finding.detail()).contains("UNKNOWN_ADDRESS", "0x1000");
        });
    assertThat(lenient.isClean()).isTrue();
  }

  @Test
  void leftoversOfAnotherKind_areFindings() throws Exception {
    SweepReport report = sweep.checking(_ -> List.of("a file")).run(_ -> {});

    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> assertThat(finding.detail()).isEqualTo("a file"));
  }

  @Test
  void endlessUseCase_isGivenUp() throws Exception {
    SweepReport report = sweep.maximumCalls(3).run(FaultSweepTest::careful);

    assertThat(report.findings())
        .extracting(SweepFinding::problem, SweepFinding::mode)
        .containsExactly(
            tuple(Problem.NEVER_ENDS, FaultMode.ONCE),
            tuple(Problem.NEVER_ENDS, FaultMode.FROM_THEN_ON));
  }

  @Test
  void givenStatus_isWhatEveryCallFailsWith() throws Exception {
    List<CudaStatus> seen = new ArrayList<>();

    sweep
        .failingWith(CudaStatus.ECC_UNCORRECTABLE)
        .run(driver -> {
          try {
            careful(driver);
          } catch (CudaException e) {
            seen.add(e.status());
            throw e;
          }
        })
        .orThrow();

    assertThat(seen).hasSize(4 + 4 + 2).containsOnly(CudaStatus.ECC_UNCORRECTABLE);
  }

  @Test
  void effectOfACallThatFailsAllTheSame_isNotUndoneTwice() throws Exception {
    SweepReport report =
        sweep.run(driver -> {
          long address = driver.memory().memAlloc(0, 512);
          try {
            driver.memory().memFree(0, address);
          } catch (CudaException e) {
            driver.memory().memFree(0, address); // right only if the first was refused
            throw e;
          }
        });

    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.mode()).isEqualTo(FaultMode.AFTER_EFFECT);
          assertThat(finding.call()).contains("memFree(").contains("with LAUNCH_FAILED");
          assertThat(finding.detail()).contains("DOUBLE_FREE");
        });
  }

  @Test
  void oneStatusThatIsNotHandled_isFound() throws Exception {
    SweepReport report =
        sweep.run(driver -> {
          try {
            driver.memory().memFree(0, driver.memory().memAlloc(0, 1));
          } catch (CudaException e) {
            if (e.status() != CudaStatus.INVALID_CONTEXT) {
              throw e;
            }
          }
        });

    assertThat(report.findings()).hasSize(2); // of memAlloc, and of memFree, which is lost
    assertThat(report.findings())
        .allSatisfy(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.SWALLOWED);
          assertThat(finding.call()).endsWith("with INVALID_CONTEXT");
        });
  }

  @Test
  void sample_failsOtherCallsWithOtherSeeds_allInTurn() throws Exception {
    assertThat(callsFailed(-1)).containsExactly(3L);
    assertThat(callsFailed(0)).containsExactly(1L, 4L);
    assertThat(callsFailed(1)).containsExactly(2L, 5L);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> sweep.sampling(0, 1))
        .withMessage("oneOf: 0 (expected: >= 1)");
  }

  /** The calls of five, all of which swallow what they fail with, that a third of a sweep fails. */
  private List<Long> callsFailed(long seed) throws InterruptedException {
    SweepReport report =
        sweep
            .failingAsUsual()
            .sampling(3, seed)
            .run(driver -> {
              for (int i = 0; i < 5; i++) {
                try {
                  driver.devices().memGetInfo(0);
                } catch (CudaException e) {
                  continue;
                }
              }
            });
    return report.findings().stream()
        .filter(finding -> finding.mode() == FaultMode.ONCE)
        .map(SweepFinding::callNumber)
        .toList();
  }

  @Test
  void callThatIsNotMadeAgain_isFound() throws Exception {
    List<CudaDriver> seen = new ArrayList<>();

    SweepReport report =
        sweep.run(driver -> {
          seen.add(driver);
          if ((seen.size() + 4) % 6 >= 3) { // runs without a fault: three tries are between
            careful(driver);
          }
        });

    assertThat(report.findings())
        .extracting(SweepFinding::problem, SweepFinding::callNumber)
        .containsExactly(tuple(Problem.NOT_REACHED, 1L), tuple(Problem.NOT_REACHED, 1L));
  }

  @Test
  void freeOfWhatIsInUse_isForgivenAfterAFault_onlyWhereTheDriverWaits() throws Exception {
    SweepReport waits = sweep.run(FaultSweepTest::freeAlthoughTheWaitFailed);
    SweepReport queues =
        sweep.run(driver -> {
          long address = driver.ordered().memAllocAsync(0, 512, 0);
          long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
          try {
            driver.streams().streamSynchronize(0, 0);
            driver.transfers().memsetD8Async(0, address, (byte) 1, 512, stream);
            driver.streams().streamSynchronize(0, stream);
          } finally {
            driver
                .ordered()
                .memFreeAsync(0, address, 0); // another stream than the one that uses it
            driver.streams().streamDestroy(0, stream);
          }
        });

    assertThat(waits.findings()).isEmpty();
    assertThat(queues.findings())
        .filteredOn(finding -> finding.problem() == Problem.MISUSED)
        .isNotEmpty()
        .allSatisfy(finding -> assertThat(finding.detail()).contains("FREE_WHILE_IN_USE"));
  }

  private static void freeAlthoughTheWaitFailed(CudaDriver driver) {
    long address = driver.memory().memAlloc(0, 512);
    try {
      driver.transfers().memsetD8Async(0, address, (byte) 1, 512, 0);
      driver.streams().streamSynchronize(0, 0);
    } finally {
      driver.memory().memFree(0, address);
    }
  }

  @Test
  void limitsThatMakeNoSense_areRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> sweep.maximumCalls(0))
        .withMessage("maximumCalls: 0 (expected: >= 1)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> sweep.timeLimit(Duration.ZERO))
        .withMessage("timeLimit: PT0S (expected: > 0)");
  }
}
