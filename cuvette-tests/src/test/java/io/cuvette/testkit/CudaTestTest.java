package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DebugPrintHook;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.ForeignLoan;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OpenObject;
import io.cuvette.PageHandles;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** The extension finds what tests leave behind: suites that would prove nothing are no suites. */
class CudaTestTest {
  private static final AtomicBoolean ASKED = new AtomicBoolean();

  /** One of the seeds that the suite runs with. */
  private static final long FAILING = Long.getLong("cuvette.seed", 2);

  /** The suites below are for these tests alone, whoever else finds them. */
  static boolean asked() {
    return ASKED.get();
  }

  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class RunsWithNoSeed {
    @CudaTest(simulatedOnly = true, seeds = 0)
    void never(Cuda cuda) {}
  }

  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class RunsWithNoDevice {
    @CudaTest(simulatedOnly = true, devices = 0)
    void never(Cuda cuda) {}
  }

  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class RunsWithFewerDevicesThanNone {
    @CudaTest(devices = -1)
    void never(Cuda cuda) {}
  }

  /** Leaves one thing of each kind open. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class LeavesThings {
    private static final List<Object> LEFT = new ArrayList<>();

    @CudaTest(simulatedOnly = true)
    void pooledBuffer(Cuda cuda) {
      LEFT.add(cuda.allocate(1000));
    }

    @CudaTest(simulatedOnly = true)
    void bufferOfAPoolThatWasClosed(Cuda cuda) {
      try (MemoryPool pool = new MemoryPool(cuda)) {
        LEFT.add(pool.allocate(1000));
      }
    }

    @CudaTest(simulatedOnly = true)
    void bufferOfAPoolThatIsAParameter(MemoryPool pool) {
      LEFT.add(pool.allocate(1000));
    }

    @CudaTest(simulatedOnly = true)
    void directBuffer(Cuda cuda) {
      LEFT.add(MemoryResource.direct().allocate(1000, cuda.currentStream()));
    }

    @CudaTest(simulatedOnly = true)
    void streamOrderedBuffer(Cuda cuda) {
      LEFT.add(MemoryResource.async().allocate(1000, cuda.currentStream()));
    }

    @CudaTest(simulatedOnly = true)
    void managedBuffer(Cuda cuda) {
      LEFT.add(cuda.allocateManaged(1000));
    }

    @CudaTest(simulatedOnly = true)
    void pinnedBuffer(Cuda cuda) {
      LEFT.add(cuda.allocatePinned(1000));
    }

    @CudaTest(simulatedOnly = true)
    void adoptedBuffer(Cuda cuda) {
      long address = cuda.driver().memory().memAlloc(0, 1000);
      LEFT.add(
          cuda.device(0).adopt(address, 1000, () -> cuda.driver().memory().memFree(0, address)));
    }

    @CudaTest(simulatedOnly = true)
    void memoryOfTheDriverAlone(Cuda cuda) {
      cuda.driver().memory().memAlloc(0, 1000);
    }

    @CudaTest(simulatedOnly = true, sanitized = false)
    void eventOfTheDriverAlone(Cuda cuda) {
      cuda.driver().events().eventCreate(0, 0);
    }

    @CudaTest(simulatedOnly = true)
    void stream(Cuda cuda) {
      LEFT.add(cuda.device(0).createStream());
    }

    @CudaTest(simulatedOnly = true)
    void event(Cuda cuda) {
      LEFT.add(cuda.currentStream().record());
    }

    @CudaTest(simulatedOnly = true)
    void cachingPool(Cuda cuda) {
      LEFT.add(new MemoryPool(cuda));
    }

    @CudaTest(simulatedOnly = true)
    void cachingPinnedPool(Cuda cuda) {
      LEFT.add(new PinnedMemoryPool(cuda));
    }

    @CudaTest(simulatedOnly = true)
    void driversPool(Cuda cuda) {
      LEFT.add(new AsyncMemoryPool(cuda));
    }

    @CudaTest(simulatedOnly = true)
    void resource(Cuda cuda) {
      LEFT.add(new DeviceMemoryResource(cuda.device(0)));
    }

    @CudaTest(simulatedOnly = true)
    void hook(Cuda cuda) {
      LEFT.add(cuda.defaultMemoryPool().addHook(new DebugPrintHook(System.out)));
    }

    @CudaTest(simulatedOnly = true)
    void pressureListener(Cuda cuda) {
      LEFT.add(cuda.defaultMemoryPool().addPressureListener((device, bytes) -> 0));
    }

    @CudaTest(simulatedOnly = true)
    void driverAndItsHostMemory(Cuda cuda) {
      SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
      driver.memory().memHostAlloc(0, 1000, 0);
      LEFT.add(driver);
    }

    @CudaTest(simulatedOnly = true)
    void exportedPages(Cuda cuda) {
      ElasticPoolOptions exportable = ElasticPoolOptions.DEFAULTS.withExportable(true);
      try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, exportable);
          Buffer buffer = pool.allocate(1000)) {
        LEFT.add(pool.export(buffer));
      }
    }

    @CudaTest(simulatedOnly = true)
    void importedBuffer(Subject subject) {
      try (Buffer exported =
          MemoryResource.direct().allocate(1000, subject.cuda().currentStream())) {
        Cuda other = subject.open(options -> options);
        LEFT.add(other.device(0).importBuffer(exported.descriptor()));
      }
    }
  }

  /** Leaves a stream of the bare driver. */
  @EnabledIf("io.cuvette.testkit.CudaTestTest#asked")
  static class LeavesAStream {
    @CudaTest(simulatedOnly = true)
    void test(CudaDriver driver) {
      driver.streams().streamCreateWithPriority(0, 0, 0);
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
      assertThat(subject.seed()).isNotEqualTo(FAILING);
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

  /** Before the Cuda takes all of it back, and with the place where it was made. */
  @Test
  void whateverIsLeftOpen_failsTheTest_andIsNamedWithItsPlace() {
    assumeSimulator();
    List<TestExecutionSummary.Failure> failures = run(LeavesThings.class).getFailures();
    for (Object left : LeavesThings.LEFT) {
      if (left instanceof SimulatedDriver driver) {
        driver.close();
      } else if (left instanceof PageHandles pages) {
        pages.close();
      }
    }
    LeavesThings.LEFT.clear();
    Map<String, String> texts = new TreeMap<>();
    for (TestExecutionSummary.Failure failure : failures) {
      String id = failure.getTestIdentifier().getUniqueId();
      String method = id.replaceAll(".*test-template:(\\w+)\\(.*", "$1");
      texts.put(method, String.valueOf(failure.getException().getMessage()));
    }
    assertThat(texts).hasSize((int) methods(LeavesThings.class));
    if (Files.isDirectory(Path.of("/proc/self/fd"))) {
      assertThat(texts.remove("driverAndItsHostMemory")).contains("files open after the test");
    }
    texts.forEach((method, text) ->
        assertThat(text)
            .as(method)
            .contains("left behind", "LeavesThings." + method + "(CudaTestTest.java:"));
    assertThat(texts.get("hook")).contains("open: hook ");
    assertThat(texts.get("pooledBuffer")).contains("open: buffer of 1000 bytes");
    assertThat(texts.get("memoryOfTheDriverAlone")).contains("live in the driver: MEMORY");
  }

  /** Of the program, not of a part of the library that made it for the program. */
  @Test
  void place_isThatOfTheProgram_whateverPartOfTheLibraryIsBetween() {
    for (String part : List.of("", ".array", ".array.internal", ".arrow", ".driver", ".sim")) {
      Throwable site = new Throwable("made here");
      site.setStackTrace(
          new StackTraceElement[] {
            new StackTraceElement("io.cuvette.internal.Made", "in", "Made.java", 1),
            new StackTraceElement("io.cuvette" + part + ".Maker", "of", "Maker.java", 2),
            new StackTraceElement("org.example.Program", "run", "Program.java", 3)
          });
      Leftovers left =
          new Leftovers(List.of(new OpenObject("buffer", 64, site)), List.of(), List.of());
      assertThatExceptionOfType(AssertionError.class)
          .isThrownBy(left::throwIfAny)
          .withMessageContaining("open: buffer, made at org.example.Program.run(Program.java:3)");
    }
  }

  /** Here it ends only once it is waited for. */
  @Test
  void whatForeignCodeGaveBack_isWaitedFor() {
    OpenedCuda opened =
        OpenedCuda.open(
            SimulatedDriver.open(SimulatedOptions.DEFAULTS),
            CudaOptions.simulated().withLeakLevel(LeakLevel.FULL),
            false);
    CudaEvent event = opened.cuda().device(0).createEvent();
    Thread test = Thread.currentThread();
    ForeignLoan loan =
        ForeignLoan.of(() -> {
          while (test.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
          }
          event.close();
        });
    loan.giveBack();
    opened.end(true, 1);
    assertThat(event.isClosed()).isTrue();
  }

  @Test
  void threadOfTheLibraryThatStays_isFound() throws InterruptedException {
    ProcessWatch watch = new ProcessWatch(Duration.ofMillis(1));
    watch.check();
    CountDownLatch end = new CountDownLatch(1);
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .name("cuvette-left")
            .start(() -> assertThatCode(end::await).doesNotThrowAnyException());
    assertThatExceptionOfType(AssertionError.class)
        .isThrownBy(watch::check)
        .withMessageContaining("thread 'cuvette-left'");
    end.countDown();
    thread.join();
    watch.check();
  }

  private static long methods(Class<?> suite) {
    return Stream.of(suite.getDeclaredMethods())
        .filter(method -> method.isAnnotationPresent(CudaTest.class))
        .count();
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
  void noSeed_isRefused() {
    assertThat(failure(RunsWithNoSeed.class)).contains("seeds: 0 (expected: >= 1)");
  }

  @Test
  void noDevice_isRefused() {
    assertThat(failure(RunsWithNoDevice.class)).contains("devices: 0 (expected: >= 1)");
    assertThat(failure(RunsWithFewerDevicesThanNone.class))
        .contains("devices: -1 (expected: >= 1)");
  }

  @Test
  void rangeOfSeeds_isWhatRuns_andOtherTextIsRefused() {
    withProperties(() -> {
      long first = 0 < FAILING && FAILING < 9 ? FAILING + 1 : 1;
      System.setProperty("cuvette.seeds", "%d-%d".formatted(first, first + 3));
      assertThat(run(FailsWithOneSeed.class).getTestsSucceededCount()).isEqualTo(4);
      System.setProperty("cuvette.seeds", " ");
      assertThat(run(FailsWithOneSeed.class).getTestsFoundCount()).isEqualTo(3);
      for (String wrong : List.of("6-3", "3-", "many", "-1", "0", "0-0")) {
        System.setProperty("cuvette.seeds", wrong);
        assertThat(failure(FailsWithOneSeed.class))
            .contains("-Dcuvette.seeds=" + wrong + " (expected: a number");
      }
    });
  }

  @Test
  void seedOfTheDevice_isTheOnlyOne_ifNoPropertyNamesAnother() {
    withProperties(() -> {
      System.setProperty("cuvette.device", "sim:devices=1, seed=" + FAILING);
      assertThat(failure(FailsWithOneSeed.class)).contains("-Dcuvette.seed=" + FAILING);
      assertThat(run(FailsWithOneSeed.class).getTestsFoundCount()).isEqualTo(1);
      System.setProperty("cuvette.seed", FAILING == 17 ? "018" : "017"); // not octal
      assertThat(run(FailsWithOneSeed.class).getTestsSucceededCount()).isEqualTo(1);
      System.setProperty("cuvette.seed", "0x2");
      assertThat(failure(FailsWithOneSeed.class))
          .contains("-Dcuvette.seed: '0x2' (expected: a 64-bit number)");
    });
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "gpux | -Dcuvette.device: 'gpux' (expected: gpu, sim, or sim:",
        "simulator | -Dcuvette.device: 'simulator' (expected: gpu, sim, or sim:",
        "SIM | -Dcuvette.device: 'SIM' (expected: gpu, sim, or sim:",
        "sim:devices=2,devices=3 | -Dcuvette.device: devices: '3' (expected: to be given once)",
        "sim:, | -Dcuvette.device: setting: '' (expected: key=value)",
        "sim:seed=abc | -Dcuvette.device: seed: 'abc' (expected: a 64-bit number)"
      })
  void deviceThatCudaRefuses_failsTheTest(String device, String message) {
    withProperties(() -> {
      System.setProperty("cuvette.device", device);
      assertThat(failures(FailsWithOneSeed.class)).contains(message);
    });
  }

  private static void withProperties(Runnable test) {
    assumeSimulator();
    Properties before = (Properties) System.getProperties().clone();
    System.clearProperty("cuvette.seed");
    System.clearProperty("cuvette.device");
    try {
      test.run();
    } finally {
      System.setProperties(before);
    }
  }

  @Test
  void failure_saysTheSeedAndHowToRunItAgain() {
    assertThat(failure(FailsWithOneSeed.class))
        .contains("seed=%d; rerun with -Dcuvette.seed=%1$d".formatted(FAILING));
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
    assumeSimulator();
    return failures(suite);
  }

  private static String failures(Class<?> suite) {
    List<TestExecutionSummary.Failure> failures = run(suite).getFailures();
    assertThat(failures).isNotEmpty(); // one for each seed
    StringWriter text = new StringWriter();
    failures.getFirst().getException().printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  private static void assumeSimulator() {
    String only = System.getProperty("cuvette.device", "");
    assumeTrue(only.isBlank() || only.startsWith("sim"));
  }

  private static TestExecutionSummary run(Class<?> suite) {
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(suite))
            // As those of the command line say: beside others, nobody looks at the process.
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "false")
            .build();
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
