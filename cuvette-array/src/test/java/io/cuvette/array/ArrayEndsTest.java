package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT16;
import static io.cuvette.array.ElementType.INT32;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweeps;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** Nothing is left, whatever fails and however many threads take part. */
class ArrayEndsTest {
  private static final int THREADS = 1_000;
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final long LOOKS_APART_NANOS = 1_000_000;

  /** Makes, copies, converts, and reads arrays; closes all. */
  private static void use(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray a = cp.array(new float[][] {{1, 2, 3}, {4, 5, 6}});
        CudaArray b = a.transpose().copy();
        CudaArray c = b.asType(INT16);
        CudaArray d = cp.full(FLOAT64, 1.25, 5, 3);
        CudaArray flat = a.transpose().reshape(6);
        HostArray host = c.toHost();
        HostArray columns =
            a.slice(Range.all(), Range.reversed()).toHost(null, Order.F, null, false)) {
      d.slice(Range.all().step(2)).fill(7);
      d.slice(Range.at(1)).copyFrom(host.slice(Range.at(0), Range.to(1)));
      cuda.currentStream().synchronize();
      assertThat(columns.getDouble(1, 0)).isEqualTo(6);
      assertThat(host.getLong(2, 1)).isEqualTo(6);
      assertThat(flat.toArray(float[].class)).containsExactly(1, 4, 2, 5, 3, 6);
      assertThat(d.toArray(double[][].class)[1]).containsOnly(1);
    }
    try (CudaArray numbers = cp.arange(INT32, 10);
        CudaArray like = cp.zerosLike(numbers)) {
      like.copyFrom(numbers);
    }
  }

  @Test
  void failingCalls_leaveNothingOpen() throws Exception {
    FaultSweeps.onSimulator("devices=1")
        .recoveringFrom(CudaStatus.INVALID_VALUE, "kernelGetParamInfo", "deviceGetAttribute")
        .allowing(CudaStatus.INVALID_VALUE, IllegalArgumentException.class)
        .run(FaultSweeps.usingTidily(ArrayEndsTest::use))
        .orThrow();
  }

  /** Converts both operands, and needs memory between two passes. */
  private static void compute(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray a = cp.array(new short[] {1, 2, 3});
        CudaArray b = cp.array(new int[] {10, 20, 30});
        CudaArray quotients = a.combine(BinaryOperation.DIVIDE, b);
        CudaArray many = ArrayRandom.of(cp, 5).integers(INT16, 0, 9, 70_000);
        NdArray mean = many.mean()) {
      assertThat(quotients.toArray(double[].class)).containsExactly(0.1, 0.1, 0.1);
      assertThat(mean.size()).isEqualTo(1);
    }
  }

  @Test
  void failingCallsOfWhatIsComputed_leaveNothingOpen() throws Exception {
    FaultSweeps.onSimulator("devices=1")
        .recoveringFrom(CudaStatus.INVALID_VALUE, "kernelGetParamInfo", "deviceGetAttribute")
        .allowing(CudaStatus.INVALID_VALUE, IllegalArgumentException.class)
        .run(FaultSweeps.usingTidily(ArrayEndsTest::compute))
        .orThrow();
  }

  @CudaTest
  void manyThreads_haveTheirOwnArraysAndData(Cuda cuda) throws Exception {
    HostArrays np = HostArrays.of(cuda);
    CudaArrays cp = CudaArrays.of(cuda);
    try (HostArray shared = np.array(new int[] {1, 2, 3, 4, 5, 6, 7, 8});
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<int[]>> results = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        int own = i;
        results.add(
            threads.submit(() -> {
              try (CudaArray a = cp.array(shared);
                  CudaArray b = a.slice(Range.reversed()).copy()) {
                b.slice(Range.at(0)).fill(own);
                return b.toArray(int[].class);
              }
            }));
      }
      for (int i = 0; i < THREADS; i++) {
        assertThat(results.get(i).get()).containsExactly(i, 7, 6, 5, 4, 3, 2, 1);
      }
    }
    assertThat(cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes()).isZero();
    assertThat(cuda.defaultPinnedMemoryPool().stats().usedBytes()).isZero();
  }

  @CudaTest(tidy = false)
  void forgottenArrays_areFound_butNotThoseWhoseViewsAreUsed(Cuda cuda) {
    CudaArray view = CudaArrays.of(cuda).full(FLOAT32, 2L, 64).slice(Range.from(32));
    for (int i = 0; i < 50; i++) {
      CudaArray _ = CudaArrays.of(cuda).zeros(FLOAT32, 64);
    }
    long start = System.nanoTime();
    while (cuda.leaksFound() < 50 && System.nanoTime() - start < PATIENCE_NANOS) {
      System.gc();
      LockSupport.parkNanos(LOOKS_APART_NANOS);
    }
    assertThat(cuda.leaksFound()).isEqualTo(50);
    assertThat(view.toArray(float[].class)).containsOnly(2);
  }
}
