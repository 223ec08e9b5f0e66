package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/** What belongs to a test in its process, and what to others; and when that is looked at. */
@Tag("simulated")
class ProcessWatchTest {
  private static final AtomicBoolean ASKED = new AtomicBoolean();
  private static final List<SimulatedDriver> LEFT = new ArrayList<>();

  @TempDir private Path directory;

  private static void leave() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    long _ = driver.memory().memHostAlloc(0, 1000, 0).address();
    LEFT.add(driver);
  }

  private static void closeAll() {
    LEFT.forEach(SimulatedDriver::close);
    LEFT.clear();
  }

  /** The suites below are for these tests alone, whoever else finds them. */
  static boolean asked() {
    return ASKED.get();
  }

  @EnabledIf("io.cuvette.testkit.ProcessWatchTest#asked")
  static class BesideOthers {
    @CudaTest(simulatedOnly = true)
    void test() {
      leave();
    }
  }

  @Isolated
  @EnabledIf("io.cuvette.testkit.ProcessWatchTest#asked")
  static class Alone {
    @CudaTest(simulatedOnly = true)
    void test() {
      leave();
    }
  }

  @Isolated
  @EnabledIf("io.cuvette.testkit.ProcessWatchTest#asked")
  static class Untidy {
    @CudaTest(simulatedOnly = true, tidy = false)
    void test() {
      leave();
    }
  }

  @EnabledIf("io.cuvette.testkit.ProcessWatchTest#asked")
  static class Fails {
    @CudaTest(simulatedOnly = true)
    void test(CudaDriver driver) {
      long _ = driver.streams().streamCreateWithPriority(0, 0, 0);
      throw new IllegalStateException("the test's own");
    }
  }

  @EnabledIf("io.cuvette.testkit.ProcessWatchTest#asked")
  static class LeavesAStream {
    @CudaTest(simulatedOnly = true)
    void test(CudaDriver driver) {
      long _ = driver.streams().streamCreateWithPriority(0, 0, 0);
    }
  }

  /** Its failures, in a run in which tests may run beside others. */
  private static List<Throwable> failures(Class<?> suite) {
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(DiscoverySelectors.selectClass(suite))
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "true")
            .configurationParameter(
                "junit.jupiter.execution.parallel.config.executor-service", "WORKER_THREAD_POOL")
            .build();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    Properties before = (Properties) System.getProperties().clone();
    ASKED.set(true);
    try {
      System.setProperty("cuvette.device", "sim");
      LauncherFactory.create().execute(request, listener);
    } finally {
      ASKED.set(false);
      System.setProperties(before);
      closeAll();
    }
    assertThat(listener.getSummary().getTestsStartedCount()).isPositive();
    return listener.getSummary().getFailures().stream()
        .<Throwable>map(failure -> failure.getException())
        .toList();
  }

  @Test
  void process_isLookedAtAfterATidyTestThatRunsAlone() {
    assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "the system does not say what is open");
    assertThat(failures(Alone.class))
        .singleElement()
        .satisfies(failure -> assertThat(failure).hasMessageContaining("files open after the"));
    assertThat(failures(BesideOthers.class)).isEmpty();
    assertThat(failures(Untidy.class)).isEmpty();
  }

  @Test
  void cleanUpThatFails_saysHowToRunItAgain_orIsAddedToTheTestsFailure() {
    assertThat(failures(LeavesAStream.class))
        .singleElement()
        .satisfies(failure ->
            assertThat(failure.getMessage())
                .contains("nothing live in the simulator")
                .containsPattern("; seed=-?\\d+; rerun with -Dcuvette.seed="));
    assertThat(failures(Fails.class))
        .singleElement()
        .satisfies(failure -> {
          assertThat(failure)
              .hasMessageMatching(
                  "java.lang.IllegalStateException: the test's own; seed=-?\\d+; rerun with .*")
              .hasCauseInstanceOf(IllegalStateException.class);
          assertThat(failure.getSuppressed())
              .anySatisfy(one ->
                  assertThat(one).hasMessageStartingWith("and the clean-up failed: after the"));
        });
  }

  @Test
  void whatWasThereBefore_andFilesOfOthers_areNoFinding() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .name("cuvette-before")
            .start(() -> assertThatCode(end::await).doesNotThrowAnyException());
    leave();
    ProcessWatch watch = new ProcessWatch(Duration.ofMillis(1));
    Path file = directory.resolve("a file");
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      assertThatCode(watch::check).doesNotThrowAnyException();
      assertThat(channel.isOpen()).isTrue();
    }
    if (Files.isDirectory(Path.of("/proc/self/fd"))) {
      leave();
      assertThatThrownBy(watch::check)
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("files open after the test");
    }
    closeAll();
    end.countDown();
    thread.join();
  }
}
