package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.SweepReport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;

/** A caching pool gives back what stays cached beyond its threshold, and what lies idle. */
class CachingReleaseTest {
  private static final long MIB = 1L << 20;
  private static final int THREADS = 6;
  private static final int STEPS = 500;

  private static MemoryPool keeping(Cuda cuda, long bytes) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withReleaseThresholdBytes(bytes));
  }

  @CudaTest
  void threshold_boundsWhatStaysCached_onAllStreams(Cuda cuda, CudaStream one, CudaStream two) {
    try (MemoryPool pool = keeping(cuda, 4 * MIB);
        Buffer used = pool.allocate(MIB, one)) {
      List<Buffer> all =
          List.of(
              pool.allocate(3 * MIB, one), pool.allocate(MIB, two), pool.allocate(2 * MIB, two));
      all.get(0).close();
      all.get(1).close();
      assertThat(pool.freeBytes()).isEqualTo(4 * MIB); // no more than the threshold
      all.get(2).close();
      assertThat(pool.freeBytes()).isLessThanOrEqualTo(4 * MIB).isPositive();
      used.fill((byte) 1, one);
      pool.assertConsistent();
    }
  }

  @CudaTest
  void threshold_isForWhatIsCached_besideAllThatIsInUse(Cuda cuda, CudaStream stream) {
    try (MemoryPool pool = keeping(cuda, 4 * MIB);
        Buffer _ = pool.allocate(16 * MIB, stream)) {
      List<Buffer> all = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        all.add(pool.allocate(2 * MIB, stream));
      }
      all.forEach(Buffer::close);
      assertThat(pool.freeBytes()).isEqualTo(4 * MIB);
    }
  }

  @CudaTest
  void thresholdOfZero_keepsNoChunk_butTheRestOfOneInUse(Cuda cuda, CudaStream stream) {
    try (MemoryPool pool = keeping(cuda, 0)) {
      pool.allocate(MIB, stream).close();
      assertThat(pool.totalBytes()).isZero();
      try (MemoryPool cut = new MemoryPool(cuda, PoolOptions.DEFAULTS)) {
        cut.allocate(4 * MIB, stream).close();
        Buffer part = cut.allocate(MIB, stream);
        assertThat(cut.freeBytes()).isEqualTo(3 * MIB);
        part.close();
        assertThat(cut.totalBytes()).isEqualTo(4 * MIB); // the default keeps all
      }
    }
  }

  /** It cannot be released, and is no reason to release other memory. */
  @CudaTest
  void memoryThatAGraphKeeps_isNoPartOfWhatStaysCached(Cuda cuda, CudaStream stream) {
    try (MemoryPool pool = keeping(cuda, MIB)) {
      try (CudaGraph graph = stream.capture(() -> pool.allocate(2 * MIB, stream).close())) {
        assertThat(graph.isClosed()).isFalse();
        pool.allocate(MIB, stream).close();
        assertThat(pool.totalBytes()).isEqualTo(3 * MIB);
      }
    }
  }

  @CudaTest
  void whatAnotherStreamUses_goesOnceThatIsDone(Cuda cuda, CudaStream one, CudaStream two) {
    try (MemoryPool pool = keeping(cuda, 0)) {
      Buffer buffer = pool.allocate(MIB, one);
      buffer.fill((byte) 1, two);
      buffer.close();
      two.synchronize();
      pool.allocate(512, two).close(); // a miss, which takes back what is done
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest
  void manyBlocksThatComeBackAtOnce_areReleasedBeyondTheThreshold(
      Cuda cuda, CudaStream one, CudaStream two) {
    try (MemoryPool pool = keeping(cuda, MIB)) {
      List<Buffer> all = new ArrayList<>();
      for (int i = 0; i < 2_000; i++) {
        Buffer buffer = pool.allocate(4096, one);
        buffer.recordUse(two);
        all.add(buffer);
      }
      try (Buffer work = pool.allocate(MIB, two)) {
        work.fill((byte) 1, two);
        all.forEach(Buffer::close);
      }
      cuda.device(0).synchronize();
      assertThat(pool.usedBytes()).isZero();
      assertThat(pool.totalBytes()).isLessThanOrEqualTo(MIB);
      pool.assertConsistent();
    }
  }

  @CudaTest
  void manyThreads_keepTheThreshold(Cuda cuda) throws InterruptedException {
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    try (MemoryPool pool = keeping(cuda, MIB);
        CudaStream shared = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      List<Thread> threads = new ArrayList<>();
      for (int t = 0; t < THREADS; t++) {
        int each = t;
        threads.add(
            Thread.ofPlatform()
                .uncaughtExceptionHandler((_, failure) -> failures.add(failure))
                .start(() -> work(pool, shared, each)));
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(failures).isEmpty();
      pool.allocate(MIB / 2, shared).close();
      assertThat(pool.usedBytes()).isZero();
      assertThat(pool.totalBytes()).isLessThanOrEqualTo(MIB);
      pool.assertConsistent();
    }
  }

  private static void work(MemoryPool pool, CudaStream stream, int seed) {
    for (int i = 0; i < STEPS; i++) {
      try (Buffer _ = pool.allocate((1 + (i * 7 + seed) % 5) * 128L * 1024, stream);
          Buffer _ = pool.allocate(MIB / 2, stream)) {
        if (i % 50 == 0) {
          pool.trim(Duration.ZERO);
        }
      }
    }
  }

  @CudaTest
  void trimByIdleTime_releasesWholeChunksThatLieIdle(Cuda cuda, MemoryPool pool) {
    try (Buffer _ = pool.allocate(MIB)) {
      pool.allocate(2 * MIB).close();
      assertThat(pool.trim(Duration.ofHours(1))).isZero();
      assertThat(pool.trim(Duration.ofSeconds(Long.MAX_VALUE))).isZero();
      assertThat(pool.trim(Duration.ZERO)).isEqualTo(2 * MIB);
      assertThat(pool.trim(Duration.ZERO)).isZero();
      assertThat(pool.totalBytes()).isEqualTo(MIB);
      assertThatThrownBy(() -> pool.trim(Duration.ofNanos(-1)))
          .hasMessage("idleFor: PT-0.000000001S (expected: >= 0)");
      pool.assertConsistent();
    }
  }

  @CudaTest
  void options_refuseAThresholdBelowZero(Cuda cuda) {
    assertThatThrownBy(() -> keeping(cuda, -1))
        .hasMessage("releaseThresholdBytes: -1 (expected: >= 0)");
  }

  @CudaTest
  void targetRatio_releasesFreeChunksBeforeGrowing(Cuda cuda, CudaStream one, CudaStream two) {
    PoolOptions options = PoolOptions.DEFAULTS.withTargetRatio(1.5);
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      Buffer used = pool.allocate(4 * MIB, one);
      List<Buffer> all = List.of(pool.allocate(8 * MIB, one), pool.allocate(8 * MIB, two));
      all.forEach(Buffer::close); // 20 MiB were in use at once
      pool.allocate(10 * MIB, one).close();
      assertThat(pool.totalBytes()).isEqualTo(30 * MIB); // to the byte
      pool.allocate(11 * MIB, two).close();
      assertThat(pool.totalBytes()).isEqualTo(23 * MIB); // those of the first stream went
      pool.resetPeaks(cuda.device(0));
      Buffer most = pool.allocate(12 * MIB, two);
      assertThat(pool.totalBytes()).isLessThanOrEqualTo(24 * MIB); // 16 MiB are in use
      most.close();
      used.close();
      pool.assertConsistent();
    }
  }

  @CudaTest
  void targetRatio_isNoLimit(Cuda cuda, CudaStream stream) {
    try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withTargetRatio(1))) {
      pool.allocate(2 * MIB, stream).close();
      try (Buffer _ = pool.allocate(MIB, stream);
          Buffer _ = pool.allocate(2 * MIB, stream)) { // no chunk is free as a whole
        assertThat(pool.totalBytes()).isEqualTo(4 * MIB);
      }
      pool.assertConsistent();
    }
  }

  @CudaTest
  void options_refuseARatioBelowOne(Cuda cuda) {
    for (double ratio : new double[] {0.99, -1, 0, Double.NaN, Double.NEGATIVE_INFINITY}) {
      assertThatThrownBy(() -> PoolOptions.DEFAULTS.withTargetRatio(ratio))
          .hasMessage("targetRatio: " + ratio + " (expected: >= 1)");
    }
    assertThat(PoolOptions.DEFAULTS.withTargetRatio(1).targetRatio()).isEqualTo(1);
  }

  /** The k-th call of the driver fails, once and for good: no byte stays counted or lost. */
  @Test
  void failingRelease_losesNothing() throws InterruptedException {
    FaultSweep sweep =
        FaultSweeps.onSimulator("seed=1").recoveringFrom(CudaStatus.OUT_OF_MEMORY, "memAlloc");
    SweepReport report =
        sweep.run(FaultSweeps.usingTidily(CachingReleaseTest::releaseInAllWays)).orThrow();
    assertThat(report.faults()).isGreaterThan(20);
  }

  private static void releaseInAllWays(Cuda cuda) {
    try (CudaStream stream = cuda.device(0).createStream();
        MemoryPool pool = keeping(cuda, MIB)) {
      try (Buffer first = pool.allocate(3 * MIB, stream);
          Buffer _ = pool.allocate(MIB, stream)) {
        first.fill((byte) 1, stream);
      }
      pool.trim(Duration.ZERO);
      pool.assertConsistent();
    }
  }
}
