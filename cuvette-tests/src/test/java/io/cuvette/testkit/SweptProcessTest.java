package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MemHandleType;
import io.cuvette.instrument.FaultMode;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.SweepFinding.Problem;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the runs of a sweep leave in the process: threads and descriptors. */
@Tag("simulated")
class SweptProcessTest {
  private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

  private final AtomicInteger runs = new AtomicInteger();
  private final CountDownLatch end = new CountDownLatch(1);
  private final Queue<FileChannel> opened = new ConcurrentLinkedQueue<>();
  private final Queue<Thread> started = new ConcurrentLinkedQueue<>();

  @TempDir private Path directory;

  @AfterEach
  void endAll() throws Exception {
    end.countDown();
    for (Thread thread : started) {
      thread.join();
    }
    for (FileChannel channel : opened) {
      channel.close();
    }
  }

  private static FaultSweep sweep() {
    return FaultSweep.over(() -> SimulatedDriver.open(SimulatedOptions.DEFAULTS)).failingAsUsual();
  }

  /** Two calls. */
  private static void work(CudaDriver driver) {
    driver.devices().ctxSynchronize(0);
    long _ = driver.devices().memGetInfo(0).freeBytes();
  }

  private void start(String name, Runnable body) {
    started.add(Thread.ofPlatform().daemon().name(name).start(body));
  }

  private void awaitEnd() {
    try {
      end.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private FileChannel open(String name) throws IOException {
    FileChannel channel =
        FileChannel.open(
            directory.resolve(name), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    opened.add(channel);
    return channel;
  }

  @Test
  void threadThatARunWithAFaultLeaves_isNamedWithTheCall() throws Exception {
    SweepReport report =
        sweep()
            .settling(Duration.ofMillis(1))
            .run(driver -> {
              try {
                work(driver);
              } catch (CudaException e) {
                if (String.valueOf(e.getMessage()).contains("memGetInfo")) {
                  start("cuvette-left", this::awaitEnd);
                  start("of the program", this::awaitEnd);
                  start("cuvette-copies-1", this::awaitEnd); // of the process
                  start("cuvette-returns", this::awaitEnd);
                }
                throw e;
              }
            });
    assertThat(report.findings())
        .hasSize(2) // once, and from there on: a call that gives something has no other effect
        .allSatisfy(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.LEFT_BEHIND);
          assertThat(finding.callNumber()).isEqualTo(2);
          assertThat(finding.call()).startsWith("memGetInfo(");
          assertThat(finding.detail()).contains("thread 'cuvette-left' is alive");
        });
    assertThat(report.findings())
        .extracting(SweepFinding::mode)
        .containsExactly(FaultMode.ONCE, FaultMode.FROM_THEN_ON);
  }

  @Test
  void threadWithoutAnyFault_isFoundInTheFirstRun_andNothingElseIsTried() throws Exception {
    SweepReport report =
        sweep()
            .settling(Duration.ofMillis(1))
            .run(driver -> {
              work(driver);
              start("cuvette-left", this::awaitEnd);
            });
    assertThat(report.runs()).isOne();
    assertOneOfNoCall(report);
  }

  /** Here it does so once the sweep waits for something. */
  @Test
  void whatEndsAMomentAfterTheRun_isNoFinding() throws Exception {
    Thread sweeping = Thread.currentThread();
    SweepReport report =
        sweep()
            .run(driver -> {
              Thread run = Thread.currentThread();
              FileChannel file = open("for a moment");
              start(
                  "cuvette-slow",
                  () -> {
                    try (file) {
                      run.join();
                      while (sweeping.getState() != Thread.State.TIMED_WAITING
                          && end.getCount() > 0) {
                        Thread.onSpinWait();
                      }
                    } catch (InterruptedException | IOException e) {
                      throw new IllegalStateException(e);
                    }
                  });
              work(driver);
            });
    assertThat(report.findings()).isEmpty();
    assertThat(report.faults()).isEqualTo(2 + 2 + 1);
  }

  @Test
  void descriptorThatEachRunWithAFaultLeaves_isNamedWithTheCall() throws Exception {
    assumeTrue(Files.isDirectory(DESCRIPTORS), "the system does not say what is open");
    SweepReport report =
        sweep()
            .settling(Duration.ofMillis(1))
            .run(driver -> {
              try {
                work(driver);
              } catch (CudaException e) {
                if (String.valueOf(e.getMessage()).contains("memGetInfo")) {
                  open("left open");
                }
                throw e;
              }
            });
    assertThat(report.findings())
        .hasSize(2)
        .allSatisfy(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.LEFT_BEHIND);
          assertThat(finding.callNumber()).isEqualTo(2);
          assertThat(finding.call()).startsWith("memGetInfo(");
          assertThat(finding.detail()).contains("files open after the run", "left open");
        });
  }

  @Test
  void threadOfARunThatIsNotHit_isOfNoCall() throws Exception {
    SweepReport report =
        sweep()
            .settling(Duration.ofMillis(1))
            .run(driver -> {
              if (runs.getAndIncrement() == 2) {
                start("cuvette-left", this::awaitEnd);
              } else {
                driver.devices().ctxSynchronize(0);
              }
            });
    assertOneOfNoCall(report);
  }

  /** Each run opens one that is closed once the sweep looks at all of them. */
  @Test
  void descriptorsThatAreClosedWhileTheSweepWaits_areNoFinding() throws Exception {
    Thread sweeping = Thread.currentThread();
    SweepReport report =
        sweep()
            .run(driver -> {
              FileChannel file = open("for a while");
              start(
                  "of the program",
                  () -> {
                    try (file) {
                      while (end.getCount() > 0 && !isIn(sweeping, "keepsFiles")) {
                        Thread.sleep(1);
                      }
                    } catch (InterruptedException | IOException e) {
                      throw new IllegalStateException(e);
                    }
                  });
              driver.devices().ctxSynchronize(0);
            });
    assertThat(report.findings()).isEmpty();
  }

  private static boolean isIn(Thread thread, String method) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals(method));
  }

  /** As the process opens files of its own, or another test does. */
  @Test
  void descriptorOfOneRunAlone_isNoFinding() throws Exception {
    SweepReport report =
        sweep()
            .settling(Duration.ofMillis(1))
            .run(driver -> {
              if (opened.isEmpty()) {
                open("once");
              }
              work(driver);
            });
    assertThat(report.findings()).isEmpty();
    assertThat(report.faults()).isEqualTo(2 + 2 + 1);
    assertThat(report.runs()).as("that run is repeated").isEqualTo(1 + 1 + report.faults() + 3);
  }

  /** Their numbers are others, since those of the first two are in use when they are opened. */
  @Test
  void filesThatAreAsManyAsThoseBefore_areNew() throws IOException {
    assumeTrue(Files.isDirectory(DESCRIPTORS), "the system does not say what is open");
    Path there = directory.toRealPath();
    FileChannel first = open("first");
    FileChannel second = open("second");
    OpenFiles files = new OpenFiles();
    open("third");
    open("fourth");
    first.close();
    second.close();
    assertThat(files.sinceLast().values())
        .contains(there.resolve("third").toString(), there.resolve("fourth").toString());
  }

  @Test
  void interrupt_endsTheWaitForAFileThatStays() throws IOException {
    assumeTrue(Files.isDirectory(DESCRIPTORS), "the system does not say what is open");
    OpenFiles files = new OpenFiles();
    open("stays");
    LeftInProcess left = LeftInProcess.of(new ThreadGroup("of no run"), files);
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> left.keepsFiles(Duration.ofSeconds(1)))
        .isInstanceOf(InterruptedException.class);
    assertThat(Thread.interrupted()).isFalse();
  }

  @Test
  void descriptorOfExportedMemory_isNamedWithItsPlace() throws Exception {
    assumeTrue(Files.isDirectory(DESCRIPTORS), "simulated memory is shared on Linux alone");
    Queue<Integer> left = new ConcurrentLinkedQueue<>();
    SweepReport report = sweep().run(driver -> left.add(exported(driver)));
    DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
    left.forEach(calls::close);
    assertThat(report.runs()).isOne();
    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.problem()).isEqualTo(Problem.LEFT_BEHIND);
          assertThat(finding.detail())
              .contains("of memExportToShareableHandle", "SweptProcessTest.exported(");
        });
  }

  private static int exported(CudaDriver driver) {
    AllocationProperties properties =
        AllocationProperties.ofDevice(0, MemHandleType.FILE_DESCRIPTOR);
    long made = driver.virtual().memCreate(2 << 20, properties);
    try {
      return driver.virtual().memExportToShareableHandle(made);
    } finally {
      driver.virtual().memRelease(made);
    }
  }

  /** One finding, of a run of which no call failed. */
  private static void assertOneOfNoCall(SweepReport report) {
    assertThat(report.findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.callNumber()).isZero();
          assertThat(finding.call()).isEqualTo("none");
        });
  }
}
