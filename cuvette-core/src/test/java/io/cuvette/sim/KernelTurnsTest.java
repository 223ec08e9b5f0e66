package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Latches;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The turns of a kernel's threads: all end with the failure of one, and each is watched. */
@Timeout(60)
class KernelTurnsTest {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private static final int SEEDS = 8;
  private static final LaunchShape ALL_TOGETHER =
      new LaunchShape(4, 1, 1, 4, 1, 1, 2, 1, 1, 0, true, false);
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  private static SimulatedKernel kernel(KernelFunction function) {
    return SimulatedKernel.of("turns" + NAMES.incrementAndGet(), function, POINTER);
  }

  /** Runs a kernel; gives the 64 bytes that it was given, zeros before. */
  private static byte[] run(SimulatedDriver driver, SimulatedKernel kernel, LaunchShape shape) {
    long memory = driver.memory().memAlloc(0, 64);
    driver.transfers().memsetD32Async(0, memory, 0, 16, 0);
    MemorySegment values = Arena.ofAuto().allocate(JAVA_LONG);
    values.set(JAVA_LONG, 0, memory);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      driver
          .kernels()
          .launchKernel(
              0,
              0,
              driver.kernels().libraryGetKernel(library, kernel.name()),
              shape,
              new LaunchParameters(values, List.of(new KernelParameter(0, 8))));
      MemorySegment result = Arena.ofAuto().allocate(64);
      driver.transfers().memcpyDtoHAsync(0, result, memory, 0);
      driver.streams().streamSynchronize(0, 0);
      return result.toArray(JAVA_BYTE);
    }
  }

  private static SimulatedDriver open(long seed) {
    return SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed));
  }

  private static void assertFails(
      long seed, SimulatedKernel kernel, LaunchShape shape, CudaStatus status, String text) {
    try (SimulatedDriver driver = open(seed)) {
      SimTestBase.assertFails(status, text, () -> run(driver, kernel, shape));
    }
  }

  /** Else their Java threads, and what they hold, would be there for ever. */
  @Test
  void failureOfAThread_endsThoseThatWaitAtAnyBarrier() {
    Map<String, KernelFunction> barriers =
        Map.of(
            "block", KernelThread::syncThreads,
            "cluster", KernelThread::syncCluster,
            "grid", KernelThread::syncGrid);
    barriers.forEach((name, barrier) -> {
      AtomicInteger came = new AtomicInteger();
      AtomicInteger left = new AtomicInteger();
      SimulatedKernel kernel =
          kernel(t -> {
            if (t.globalX() == 5) {
              throw new IllegalStateException("the fifth");
            }
            int _ = came.incrementAndGet();
            try {
              barrier.run(t);
            } finally {
              int _ = left.incrementAndGet();
            }
          });
      for (int seed = 0; seed < SEEDS; seed++) {
        assertFails(seed, kernel, ALL_TOGETHER, CudaStatus.LAUNCH_FAILED, "the fifth");
        assertThat(left).as("%s, seed %d", name, seed).hasValue(came.get());
      }
      assertThat(came).hasPositiveValue();
    });
  }

  @Test
  void functionThatWaitsBehindABarrier_isNoticedAsWell() {
    CountDownLatch never = new CountDownLatch(1);
    SimulatedKernel kernel =
        kernel(
                t -> {
                  t.syncThreads();
                  if (t.threadX() == 2) {
                    Latches.await(never);
                  }
                  t.syncThreads();
                })
            .withPatience(Duration.ofMillis(20));
    LaunchShape shape = new LaunchShape(1, 1, 1, 4, 1, 1, 1, 1, 1, 0, false, false);
    for (int seed = 0; seed < 3; seed++) {
      assertFails(
          seed,
          kernel,
          shape,
          CudaStatus.LAUNCH_TIMEOUT,
          "thread (2, 0, 0): its function has waited for PT0.02S");
    }
  }

  /** Whatever a function, or another one, makes of it. */
  @Test
  void launch_failsWithWhatHappenedFirst() {
    SimulatedKernel kernel =
        kernel(t -> {
          try {
            t.setInt(64, 1);
          } catch (RuntimeException e) {
            throw new IllegalStateException("a failure of its own", e);
          }
        });
    for (int seed = 0; seed < SEEDS; seed++) {
      for (LaunchShape shape : List.of(ONE, ALL_TOGETHER)) {
        String text = "4 bytes at 0x40 are not in any memory";
        assertFails(seed, kernel, shape, CudaStatus.ILLEGAL_ADDRESS, text);
      }
    }
  }

  /** The first refusal is what the launch fails with, and what the function is told ever after. */
  @Test
  void function_isToldWhatItsLaunchFailsWith() {
    Map<String, KernelFunction> refused =
        Map.of(
            "4 bytes at 0x40 are not in any memory", t -> t.setInt(64, 1),
            "(expected: a multiple of 8)", t -> t.setLong(t.pointer(0) + 4, 1),
            "condition: 0x7", t -> t.setConditional(7, 1),
            "parameter 0 read as 4 bytes", t -> assertThat(t.intValue(0)).isZero(),
            "parameter -1 (expected: >= 0", t -> assertThat(t.struct(-1).byteSize()).isZero(),
            "parameter 1 (expected: >= 0", t -> assertThat(t.struct(1).byteSize()).isZero(),
            "block -1 of the cluster", t -> assertThat(t.shared(-1).byteSize()).isZero(),
            "block 1 of the cluster", t -> assertThat(t.shared(1).byteSize()).isZero(),
            "not cooperative", KernelThread::syncGrid);
    refused.forEach((text, use) -> {
      List<RuntimeException> told = Collections.synchronizedList(new ArrayList<>());
      AtomicBoolean wrote = new AtomicBoolean();
      SimulatedKernel kernel =
          kernel(t -> {
            for (int i = 0; i < 2; i++) {
              try {
                use.run(t);
              } catch (RuntimeException e) {
                told.add(e);
              }
            }
            t.setInt(t.pointer(0), 1);
            wrote.set(true);
          });
      try (SimulatedDriver driver = open(1)) {
        io.cuvette.driver.CudaException failed =
            org.assertj.core.api.Assertions.catchThrowableOfType(
                io.cuvette.driver.CudaException.class, () -> run(driver, kernel, ONE));
        assertThat(failed).hasMessageContaining(text).hasMessageContaining(kernel.name());
        assertThat(told)
            .hasSize(2)
            .allSatisfy(e -> assertThat(e).hasMessageContaining(text.substring(0, 9)));
        assertThat(wrote).isFalse();
      }
    });
  }

  @Test
  void numbersOfEachType_areThoseOfMemory() {
    List<Object> seen = new ArrayList<>();
    SimulatedKernel kernel =
        kernel(t -> {
          long at = t.pointer(0);
          t.setDouble(at, -1.5e300);
          t.setFloat(at + 8, 2.5f);
          t.setInt(at + 12, -3);
          t.setLong(at + 16, Long.MIN_VALUE);
          t.setByte(at + 24, (byte) -4);
          seen.add(t.getDouble(at));
          seen.add(t.getFloat(at + 8));
          seen.add(t.getInt(at + 12));
          seen.add(t.getLong(at + 16));
          seen.add(t.getByte(at + 24));
          seen.add(t.atomicAdd(at + 8, 0.25f));
          seen.add(t.getFloat(at + 8));
          seen.add(t.atomicAdd(at + 12, 5));
          seen.add(t.atomicCas(at + 12, 1, 9));
          seen.add(t.atomicCas(at + 12, 2, 7));
          seen.add(t.getInt(at + 12));
        });
    MemorySegment bytes;
    try (SimulatedDriver driver = open(1)) {
      bytes = MemorySegment.ofArray(run(driver, kernel, ONE));
    }
    assertThat(seen)
        .containsExactly(-1.5e300, 2.5f, -3, Long.MIN_VALUE, (byte) -4, 2.5f, 2.75f, -3, 2, 2, 7);
    assertThat(bytes.get(java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED, 0))
        .isEqualTo(-1.5e300);
    assertThat(bytes.get(java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED, 8)).isEqualTo(2.75f);
    assertThat(bytes.get(JAVA_BYTE, 24)).isEqualTo((byte) -4);
  }
}
