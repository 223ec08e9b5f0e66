package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Latches;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Functions of kernels that wait for Java threads, or go on after they were refused. */
@Timeout(60)
class WaitingKernelTest {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private static final Duration SHORT = Duration.ofMillis(50);
  private static final Duration PATIENCE = Duration.ofSeconds(40);

  /** More refusals than a function may go on after. */
  private static final int MANY = 3_000;

  private final SimulatedDriver driver =
      SimulatedDriver.open(
          SimulatedOptions.DEFAULTS.withSeed(Integer.getInteger("cuvette.seed", 1)));

  @AfterEach
  void close() {
    driver.close();
  }

  private static SimulatedKernel kernel(KernelFunction function) {
    return SimulatedKernel.of("waiting" + NAMES.incrementAndGet(), function, POINTER);
  }

  /** Runs a kernel with so many threads in one block; gives what it wrote. */
  private int run(SimulatedKernel kernel, int threads) {
    return run(driver, kernel, threads);
  }

  private static int run(SimulatedDriver driver, SimulatedKernel kernel, int threads) {
    long memory = driver.memory().memAlloc(0, 64);
    driver.transfers().memsetD32Async(0, memory, 0, 16, 0);
    MemorySegment values = Arena.ofAuto().allocate(8, 8);
    values.set(JAVA_LONG, 0, memory);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      driver
          .kernels()
          .launchKernel(
              0,
              0,
              driver.kernels().libraryGetKernel(library, kernel.name()),
              new LaunchShape(1, 1, 1, threads, 1, 1, 1, 1, 1, 0, false, false),
              new LaunchParameters(values, List.of(new KernelParameter(0, 8))));
      MemorySegment result = Arena.ofAuto().allocate(JAVA_INT);
      driver.transfers().memcpyDtoHAsync(0, result, memory, 0);
      driver.streams().streamSynchronize(0, 0);
      return result.get(JAVA_INT, 0);
    }
  }

  private void assertFails(SimulatedKernel kernel, int threads, CudaStatus status, String text) {
    assertThatThrownBy(() -> run(kernel, threads))
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
        .hasMessageContaining(text);
  }

  @Test
  void functionThatWaitsForAThreadThatWaitsForTheDriver_fails_andTheThreadGoesOn()
      throws InterruptedException {
    CountDownLatch answered = new CountDownLatch(1);
    AtomicReference<Thread> asks = new AtomicReference<>();
    SimulatedKernel kernel =
        kernel(
                t -> {
                  asks.set(
                      Thread.startVirtualThread(() -> {
                        int _ = driver.devices().deviceGetCount();
                        answered.countDown();
                      }));
                  Latches.await(answered);
                  t.setInt(t.pointer(0), 1);
                })
            .withPatience(SHORT);
    assertFails(
        kernel,
        1,
        CudaStatus.LAUNCH_TIMEOUT,
        "block (0, 0, 0), thread (0, 0, 0): its function has waited for PT0.05S, perhaps for a");
    asks.get().join();
  }

  /** Also at a monitor, where no interrupt reaches it. */
  @Test
  void functionThatWaitsForAMonitor_fails() throws InterruptedException {
    Object monitor = new Object();
    CountDownLatch isHeld = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    Thread holder =
        Thread.ofPlatform()
            .start(() -> {
              synchronized (monitor) {
                isHeld.countDown();
                Latches.await(goOn);
              }
            });
    isHeld.await();
    SimulatedKernel kernel =
        kernel(
                t -> {
                  synchronized (monitor) {
                    t.setInt(t.pointer(0), 1);
                  }
                })
            .withPatience(SHORT);
    try {
      assertFails(kernel, 1, CudaStatus.LAUNCH_TIMEOUT, "its function has waited for PT0.05S");
    } finally {
      goOn.countDown();
      holder.join();
    }
  }

  @Test
  void threadsThatWaitAtABarrier_endWithTheOneThatWaitsElsewhere() {
    CountDownLatch never = new CountDownLatch(1);
    SimulatedKernel kernel =
        kernel(
                t -> {
                  if (t.threadX() == 3) {
                    Latches.await(never);
                  }
                  t.syncThreads();
                })
            .withPatience(SHORT);
    assertFails(kernel, 8, CudaStatus.LAUNCH_TIMEOUT, "thread (3, 0, 0): its function has waited");
  }

  /** It is not what goes on in spite of its refusals. */
  @Test
  void threadThatUsesTheViewOfAFunctionThatWasLeft_isRefusedEachTime() throws InterruptedException {
    CountDownLatch never = new CountDownLatch(1);
    AtomicReference<KernelThread> left = new AtomicReference<>();
    SimulatedKernel kernel =
        kernel(
                t -> {
                  left.set(t);
                  Latches.await(never);
                })
            .withPatience(SHORT);
    assertFails(kernel, 1, CudaStatus.LAUNCH_TIMEOUT, "its function has waited");
    AtomicInteger refused = new AtomicInteger();
    Thread other =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              for (int i = 0; i < MANY; i++) {
                try {
                  left.get().syncThreads();
                } catch (IllegalStateException e) {
                  refused.incrementAndGet();
                }
              }
            });
    assertThat(other.join(PATIENCE)).isTrue();
    assertThat(refused).hasValue(MANY);
  }

  @Test
  void functionThatWaitsForAThreadThatNeedsNoDriver_goesOn() {
    CyclicBarrier meeting = new CyclicBarrier(2);
    SimulatedKernel kernel =
        kernel(t -> {
          Thread _ = Thread.startVirtualThread(() -> meet(meeting));
          meet(meeting);
          int _ = t.atomicAdd(t.pointer(0), 1);
        });
    assertThat(run(kernel, 32)).isEqualTo(32);
  }

  private static void meet(CyclicBarrier barrier) {
    try {
      int _ = barrier.await();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void timeInWhichOthersCompute_isNotCounted() {
    SimulatedKernel kernel =
        kernel(
                t -> {
                  long value = t.threadX();
                  for (int i = 0; i < 20_000_000; i++) {
                    value = value * 6_364_136_223_846_793_005L + 1;
                  }
                  t.syncThreads();
                  int _ = t.atomicAdd(t.pointer(0), value == 0 ? 2 : 1);
                })
            .withPatience(Duration.ofMillis(1));
    assertThat(run(kernel, 8)).isEqualTo(8);
  }

  @Test
  void functionThatGoesOnAfterItWasRefused_failsItsLaunchAllTheSame() {
    SimulatedKernel kernel =
        kernel(t -> {
          try {
            t.setInt(64, 1);
          } catch (RuntimeException _) {
            return;
          }
        });
    assertFails(kernel, 4, CudaStatus.ILLEGAL_ADDRESS, "4 bytes at 0x40 are not in any memory");
  }

  @Test
  void everyKindOfRefusal_failsTheLaunch_ifItsFunctionGoesOn() {
    List<KernelFunction> refused =
        List.of(
            t -> t.setInt(t.pointer(0) + 1, 1),
            t -> t.intValue(0),
            t -> t.intValue(1),
            t -> t.shared(1),
            KernelThread::syncGrid,
            t -> {
              if (t.threadX() == 0) {
                t.syncThreads();
              }
            });
    for (KernelFunction each : refused) {
      SimulatedKernel kernel =
          kernel(t -> {
            try {
              each.run(t);
            } catch (RuntimeException _) {
              return;
            }
          });
      try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
        assertThatThrownBy(() -> run(other, kernel, 4)).isInstanceOf(CudaException.class);
      }
    }
  }

  @Test
  void functionThatSwallowsEveryRefusal_isStopped() {
    SimulatedKernel kernel =
        kernel(t -> {
          AtomicBoolean ever = new AtomicBoolean(true);
          while (ever.get()) {
            try {
              t.setInt(64 + t.threadX(), 1);
              t.syncThreads();
            } catch (RuntimeException _) {
              Thread.onSpinWait();
            }
          }
        });
    assertThatThrownBy(() -> run(kernel, 4)).isInstanceOf(CudaException.class);
  }

  /** It may clean up, in which it is refused as well, but not for ever. */
  @Test
  void functionThatGoesOn_isRefusedSoOften_andThenStopped() {
    for (int often : new int[] {1, 1_000, 1_001, 5_000}) {
      AtomicInteger refusals = new AtomicInteger();
      AtomicBoolean ended = new AtomicBoolean();
      SimulatedKernel kernel =
          kernel(t -> {
            while (refusals.get() < often) {
              try {
                t.setInt(64, 1);
              } catch (RuntimeException _) {
                int _ = refusals.incrementAndGet();
              }
            }
            ended.set(true);
          });
      try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
        assertThatThrownBy(() -> run(other, kernel, 1)).isInstanceOf(CudaException.class);
      }
      assertThat(refusals).hasValue(Math.min(often, 1_001));
      assertThat(ended.get()).isEqualTo(often <= 1_001);
    }
  }

  @Test
  void functionThatSwallowsItsInterrupt_isStopped_andNothingItDoesIsSeen() {
    CountDownLatch wrote = new CountDownLatch(1);
    AtomicReference<Throwable> refused = new AtomicReference<>();
    SimulatedKernel kernel =
        kernel(
                t -> {
                  while (!Thread.interrupted()) {
                    LockSupport.park();
                  }
                  for (int i = 0; i < 10_000; i++) {
                    try {
                      t.setInt(t.pointer(0), 1);
                    } catch (RuntimeException e) {
                      refused.set(e);
                      wrote.countDown();
                    }
                  }
                })
            .withPatience(SHORT);
    assertFails(kernel, 1, CudaStatus.LAUNCH_TIMEOUT, "its function has waited");
    Latches.await(wrote);
    assertThat(refused.get()).hasMessageContaining("is used after its end");
  }

  /** Nothing else can end its Java thread, which would keep a processor busy. */
  @Test
  void functionThatSwallowsEveryRefusalAfterItsEnd_isStopped() {
    int many = 50_000;
    AtomicInteger refusals = new AtomicInteger();
    AtomicReference<Thread> worker = new AtomicReference<>();
    CountDownLatch goesOn = new CountDownLatch(1);
    SimulatedKernel kernel =
        kernel(
                t -> {
                  worker.set(Thread.currentThread());
                  while (!Thread.interrupted()) {
                    LockSupport.park();
                  }
                  while (refusals.get() < many) {
                    try {
                      t.setInt(t.pointer(0), 1);
                    } catch (RuntimeException _) {
                      int _ = refusals.incrementAndGet();
                      goesOn.countDown();
                    }
                  }
                })
            .withPatience(SHORT);
    assertFails(kernel, 1, CudaStatus.LAUNCH_TIMEOUT, "its function has waited");
    Latches.await(goesOn);
    Thread.State state = worker.get().getState();
    while (state != Thread.State.WAITING && refusals.get() < many) {
      Thread.onSpinWait();
      state = worker.get().getState();
    }
    assertThat(state).isEqualTo(Thread.State.WAITING);
    assertThat(refusals).hasValueLessThan(many);
  }

  /** It is the Java thread of another by then, which has to go on. */
  @Test
  void viewOfAThreadThatEnded_isRefusedToTheNext_howeverOften() {
    AtomicReference<KernelThread> last = new AtomicReference<>();
    AtomicReference<Thread> worker = new AtomicReference<>();
    AtomicInteger refusals = new AtomicInteger();
    SimulatedKernel kernel =
        kernel(
                t -> {
                  KernelThread before = last.getAndSet(t);
                  boolean isSame =
                      Thread.currentThread().equals(worker.getAndSet(Thread.currentThread()));
                  for (int i = 0; isSame && i < MANY; i++) {
                    assertThatThrownBy(() -> before.setInt(t.pointer(0), 1))
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("is used after its end");
                    int _ = refusals.incrementAndGet();
                  }
                })
            .withPatience(SHORT);
    assertThat(run(kernel, 3)).isZero();
    assertThat(refusals).hasValue(2 * MANY);
  }

  @Test
  void functionThatInterruptsItsThread_waitsAtBarriersAllTheSame() {
    AtomicInteger interrupted = new AtomicInteger();
    SimulatedKernel kernel =
        kernel(t -> {
          if (Thread.currentThread().isInterrupted()) {
            int _ = interrupted.incrementAndGet();
          }
          int _ = t.atomicAdd(t.pointer(0), 1);
          if (t.threadX() % 2 == 0) {
            Thread.currentThread().interrupt();
          }
          t.syncThreads();
          if (t.getInt(t.pointer(0)) != 64) {
            t.setInt(t.pointer(0), -1);
          }
          if (t.threadX() % 2 == 0) {
            Thread.currentThread().interrupt();
          }
        });
    assertThat(run(kernel, 64)).isEqualTo(64);
    assertThat(interrupted).hasValue(0);
  }

  @Test
  void functionThatClosesItsDriver_isRefused() {
    assertFails(
        kernel(_ -> driver.close()),
        1,
        CudaStatus.LAUNCH_FAILED,
        "kernels must not call the driver");
  }

  @Test
  void patience_isBetweenAMillisecondAndADay() {
    SimulatedKernel kernel = kernel(_ -> {});
    assertThat(kernel.patience()).isEqualTo(Duration.ofSeconds(10));
    assertThat(kernel.withPatience(Duration.ofDays(1)).withSharedBytes(8).patience())
        .isEqualTo(Duration.ofDays(1));
    assertThat(kernel.withPatience(Duration.ofMillis(1)).patience().toMillis()).isEqualTo(1);
    assertThatThrownBy(() -> kernel.withPatience(Duration.ofNanos(999_999)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("patience: PT0.000999999S (expected: PT0.001S to PT24H)");
    assertThatThrownBy(() -> kernel.withPatience(Duration.ofDays(1).plusNanos(1)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
