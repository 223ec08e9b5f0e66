package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** The extension finds what tests leave behind: suites that would prove nothing are no suites. */
class CudaTestTest {
  private static final AtomicBoolean ASKED = new AtomicBoolean();

  /** The suites below are for these tests alone, whoever else finds them. */
  static boolean asked() {
    return ASKED.get();
  }

  /** Leaves a buffer open. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class LeavesABuffer {
    @CudaTest(simulatedOnly = true)
    void test(Cuda cuda) {
      cuda.allocate(1000);
    }
  }

  /** Leaves a stream of the bare driver. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class LeavesAStream {
    @CudaTest(simulatedOnly = true)
    void test(CudaDriver driver) {
      driver.streamCreateWithPriority(0, 0, 0);
    }
  }

  /** Two streams, and nothing orders them. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class Races {
    @CudaTest(simulatedOnly = true)
    void test(Cuda cuda) {
      try (CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
          CudaStream two = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
          Buffer buffer = cuda.allocate(1000, one)) {
        buffer.fill((byte) 1, one);
        buffer.fill((byte) 2, two);
        one.synchronize();
        two.synchronize();
      }
    }
  }

  /** Fails with one seed of three. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class FailsWithOneSeed {
    @CudaTest(simulatedOnly = true, seeds = 3)
    void test(Subject subject) {
      assertThat(subject.seed()).isNotEqualTo(2);
    }
  }

  /** Works. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class IsTidy {
    @CudaTest(seeds = 2)
    void test(Cuda cuda) {
      cuda.allocate(1000).close();
    }
  }

  /** Needs more devices than any machine has. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class NeedsMany {
    @CudaTest(devices = 30)
    void test(Cuda cuda) {
      assertThat(cuda.deviceCount()).isGreaterThanOrEqualTo(30);
    }
  }

  @Test
  void bufferLeftOpen_failsTheTest() {
    assertThat(failure(LeavesABuffer.class)).contains("all buffers closed", "used 1.00 KiB");
  }

  @Test
  void handleLeftBehind_failsTheTest() {
    assertThat(failure(LeavesAStream.class)).contains("stream id");
  }

  @Test
  void race_failsTheTest() {
    assertThat(failure(Races.class)).contains("RACE");
  }

  @Test
  void failure_saysTheSeedAndHowToRunItAgain() {
    assertThat(failure(FailsWithOneSeed.class)).contains("seed=2; rerun with -Dcuvette.seed=2");
  }

  @Test
  void tidyTest_runsWithEachSeed_andOnAGpuOrIsSkippedThere() {
    TestExecutionSummary summary = run(IsTidy.class);
    assertThat(summary.getFailures()).isEmpty();
    assertThat(summary.getTestsFoundCount())
        .isEqualTo(summary.getTestsSucceededCount() + summary.getTestsSkippedCount());
    assertThat(summary.getTestsFoundCount()).isPositive();
  }

  @Test
  void testThatNeedsMoreGpusThanThereAre_isSkipped_andRunsOnTheSimulator() {
    TestExecutionSummary summary = run(NeedsMany.class);
    assertThat(summary.getFailures()).isEmpty();
    assertThat(summary.getTestsFoundCount())
        .isEqualTo(summary.getTestsSucceededCount() + summary.getTestsSkippedCount());
  }

  /** With -Dcuvette.device=gpu there is no run of these, and nothing to fail. */
  private static String failure(Class<?> suite) {
    String only = System.getProperty("cuvette.device", "");
    assumeTrue(only.isBlank() || only.startsWith("sim"));
    List<TestExecutionSummary.Failure> failures = run(suite).getFailures();
    assertThat(failures).hasSize(1);
    StringWriter text = new StringWriter();
    failures.getFirst().getException().printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  private static TestExecutionSummary run(Class<?> suite) {
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request().selectors(selectClass(suite)).build();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    ASKED.set(true);
    try {
      LauncherFactory.create().execute(request, listener);
    } finally {
      ASKED.set(false);
    }
    return listener.getSummary();
  }
}
