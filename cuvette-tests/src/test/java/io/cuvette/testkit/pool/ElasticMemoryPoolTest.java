package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.Fragmentation;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.Registration;
import io.cuvette.Scope;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.SweepReport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;

/** An elastic pool wastes little memory, keeps its limit, and gives all back. */
class ElasticMemoryPoolTest {
  private static final long MIB = 1L << 20;
  private static final int THREADS = 6;
  private static final int STEPS = 1000;

  private static ElasticMemoryPool limited(Cuda cuda, long bytes) {
    MemoryLimit limit = MemoryLimit.ofBytes(bytes);
    return new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withLimit(limit));
  }

  @CudaTest
  void freeMemoryInPieces_servesALargerBlock_withoutMore(Cuda cuda) {
    try (ElasticMemoryPool pool = limited(cuda, 64 * MIB)) {
      List<Buffer> all = new ArrayList<>();
      for (int i = 0; i < 16; i++) {
        all.add(pool.allocate(4 * MIB));
      }
      for (int i = 0; i < 16; i += 2) {
        all.get(i).close();
      }
      cuda.device(0).synchronize();
      Buffer large = pool.allocate(32 * MIB); // no 32 MiB lie side by side
      large.fill((byte) 3);
      assertThat(pool.stats().heldBytes()).isEqualTo(64 * MIB);
      assertThat(pool.pages().movedPieces()).isPositive();
      pool.assertConsistent();
      large.close();
      for (int i = 1; i < 16; i += 2) {
        all.get(i).close();
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void nearTheLimit_piecesAreSmall_soThatABlockHoldsLittleMoreThanItself(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer _ = pool.allocate(8192 * MIB)) {
      long before = pool.pages().pieces();
      try (Buffer _ = pool.allocate(64 * MIB)) {
        assertThat(pool.pages().pieces() - before).isEqualTo(2); // of 32 MiB
        pool.setLimit(MemoryLimit.ofBytes(12_000 * MIB));
        try (Buffer _ = pool.allocate(64 * MIB)) {
          assertThat(pool.pages().pieces() - before).as("a third is left").isEqualTo(2 + 2);
        }
        pool.trim(0);
        pool.setLimit(MemoryLimit.ofBytes(9000 * MIB));
        try (Buffer _ = pool.allocate(64 * MIB)) {
          assertThat(pool.pages().pieces() - before).isEqualTo(2 + 8); // of 8 MiB
        }
      }
    }
  }

  @CudaTest
  void limit_isHard_andTheFailureHasTheNumbers(Cuda cuda) {
    try (ElasticMemoryPool pool = limited(cuda, 8 * MIB);
        Buffer _ = pool.allocate(6 * MIB)) {
      assertThatThrownBy(() -> pool.allocate(4 * MIB))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThatThrownBy(() -> pool.allocate(1L << 62))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(pool.stats().peakHeldBytes()).isLessThanOrEqualTo(8 * MIB);
      pool.assertConsistent();
    }
  }

  @CudaTest
  void trim_releasesWhatIsDone_toTheBytes(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      pool.allocate(8 * MIB).close();
      cuda.device(0).synchronize();
      assertThat(pool.trim(Duration.ofDays(1))).isZero();
      assertThat(pool.trim(4 * MIB)).isPositive();
      assertThat(pool.trim(Duration.ZERO)).isPositive();
      assertThat(pool.totalBytes()).isZero();
      assertThatThrownBy(() -> pool.trim(-1)).hasMessage("keptBytes: -1 (expected: >= 0)");
      assertThatThrownBy(() -> pool.trim(Duration.ofNanos(-1)))
          .hasMessage("idleFor: PT-0.000000001S (expected: >= 0)");
    }
  }

  /** It is unmapped in several steps. */
  @CudaTest(simulatedOnly = true)
  void trimOfMuch_keepsWhatItWasAskedTo(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      pool.allocate(640 * MIB).close();
      cuda.device(0).synchronize();
      assertThat(pool.trim(Duration.ofMinutes(10))).isZero();
      long _ = pool.trim(300 * MIB);
      assertThat(pool.totalBytes()).isBetween(268 * MIB, 300 * MIB);
    }
  }

  @CudaTest
  void releaseThreshold_boundsWhatIsCached(Cuda cuda) {
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withReleaseThresholdBytes(4 * MIB);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options)) {
      List<Buffer> all = List.of(pool.allocate(6 * MIB), pool.allocate(6 * MIB));
      all.forEach(Buffer::close);
      cuda.device(0).synchronize();
      pool.allocate(512).close();
      assertThat(pool.freeBytes()).isLessThanOrEqualTo(4 * MIB);
    }
  }

  @CudaTest
  void fragmentation_isToldByCause(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer _ = pool.allocate(3 * MIB)) {
      Fragmentation now = pool.fragmentation();
      assertThat(now.boundBytes()).isEqualTo(MIB);
      assertThat(now.freeBytes()).isEqualTo(MIB);
      assertThat(now.heldBytes()).isEqualTo(4 * MIB);
      assertThat(now.ratio()).isEqualTo(0.25);
    }
  }

  @CudaTest
  void poolWithoutMemory_isNotFragmented(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      assertThat(pool.fragmentation()).isEqualTo(new Fragmentation(0, 0, 0, 0, 0, 0));
      assertThat(pool.fragmentation().ratio()).isZero();
    }
  }

  @CudaTest
  void wholePieces_areMovable_andWhatIsBesideABlockIsBound(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      Buffer large = pool.allocate(8 * MIB);
      try (Buffer _ = pool.allocate(3 * MIB)) {
        large.close();
        cuda.device(0).synchronize();
        assertThat(pool.trim(16 * MIB)).as("nothing is too much").isZero();
        Fragmentation now = pool.fragmentation();
        assertThat(now.movableBytes()).isEqualTo(8 * MIB);
        assertThat(now.boundBytes()).isEqualTo(MIB);
        assertThat(now.orderedBytes() + now.graphBytes() + now.pendingBytes()).isZero();
        assertThat(now.freeBytes()).isEqualTo(9 * MIB);
        assertThat(now.ratio()).isEqualTo(1 / 12.0);
      }
    }
  }

  @CudaTest
  void peaks_startAnewFromNow(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      pool.allocate(8 * MIB).close();
      cuda.device(0).synchronize();
      assertThat(pool.stats().peakUsedBytes()).isEqualTo(8 * MIB);
      pool.resetPeaks(cuda.device(0));
      assertThat(pool.stats().peakUsedBytes()).isZero();
      assertThat(pool.stats().peakHeldBytes()).isEqualTo(8 * MIB);
    }
  }

  @CudaTest
  void hooksAndListeners_areCalled_untilTheyAreClosed(Cuda cuda) throws InterruptedException {
    List<String> told = new ArrayList<>();
    MemoryHook hook =
        new MemoryHook() {
          @Override
          public void mallocPreprocess(Block block) {
            told.add("hook " + block.requestedBytes());
          }
        };
    try (ElasticMemoryPool pool = limited(cuda, 4 * MIB)) {
      Registration listener =
          pool.addPressureListener((_, bytes) -> {
            told.add("listener " + bytes);
            return 0;
          });
      try (Scope _ = pool.useHook(hook)) {
        Thread.ofPlatform().start(() -> pool.allocate(7).close()).join();
        pool.allocate(8).close();
      }
      pool.allocate(9).close();
      assertThat(told).containsExactly("hook 8");
      Registration ofAll = pool.addHook(hook);
      Thread.ofPlatform().start(() -> pool.allocate(10).close()).join();
      ofAll.close();
      try (Buffer _ = pool.allocate(3 * MIB)) {
        assertThatThrownBy(() -> pool.allocate(3 * MIB))
            .isInstanceOf(OutOfDeviceMemoryException.class);
        assertThat(told).startsWith("hook 8", "hook 10").contains("listener " + 3 * MIB);
        listener.close();
        int before = told.size();
        assertThatThrownBy(() -> pool.allocate(3 * MIB))
            .isInstanceOf(OutOfDeviceMemoryException.class);
        assertThat(told).hasSize(before);
      }
    }
  }

  @CudaTest
  void memoryInUseOnAnotherStream_isNotGivenOutBefore(Cuda cuda, CudaStream one, CudaStream two) {
    try (ElasticMemoryPool pool = limited(cuda, 4 * MIB)) {
      Buffer first = pool.allocate(4 * MIB, one);
      first.fill((byte) 1, two);
      first.close();
      Buffer second = pool.allocate(4 * MIB, one);
      second.fill((byte) 2, one);
      second.close();
      pool.assertConsistent();
    }
  }

  @Test
  void deviceWithoutVirtualMemory_isRefused_withWhatToTake() {
    CudaOptions options = CudaOptions.DEFAULTS.withDevice("sim:virtualMemory=false");
    try (Cuda cuda = Cuda.open(options)) {
      assertThatThrownBy(() -> new ElasticMemoryPool(cuda))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("MemoryPool");
    }
  }

  @CudaTest(seeds = 4)
  void threads_allocateFreeAndTrim_andAllComesBack(
      Subject subject, Cuda cuda, CudaStream one, CudaStream two) throws InterruptedException {
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    try (ElasticMemoryPool pool = limited(cuda, 48 * MIB)) {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        SplittableRandom random = new SplittableRandom(subject.seed() * THREADS + i);
        CudaStream stream = i % 2 == 0 ? one : two;
        Runnable body =
            () -> {
              try {
                run(pool, stream, random);
              } catch (Throwable e) { // of a thread of the test
                failures.add(e);
              }
            };
        threads.add(i % 2 == 0 ? Thread.ofPlatform().start(body) : Thread.ofVirtual().start(body));
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(failures).isEmpty();
      cuda.device(0).synchronize();
      assertThat(pool.stats().usedBytes()).isZero();
      assertThat(pool.stats().usedBlocks()).isZero();
      assertThat(pool.stats().peakHeldBytes()).isLessThanOrEqualTo(48 * MIB);
      pool.assertConsistent();
      pool.freeAllBlocks();
      assertThat(pool.totalBytes()).isZero();
    }
  }

  private static void run(ElasticMemoryPool pool, CudaStream stream, SplittableRandom random) {
    List<Buffer> live = new ArrayList<>();
    for (int i = 0; i < STEPS; i++) {
      int choice = random.nextInt(100);
      if (choice < 50 && live.size() < 8) {
        try {
          Buffer buffer = pool.allocate(1 + random.nextLong(choice < 40 ? 9000 : 6 * MIB), stream);
          buffer.slice(0, 1).fill((byte) i, stream);
          live.add(buffer);
        } catch (OutOfDeviceMemoryException e) {
          live.forEach(Buffer::close);
          live.clear();
        }
      } else if (choice < 97 && !live.isEmpty()) {
        live.remove(random.nextInt(live.size())).close();
      } else if (choice >= 97) {
        pool.trim(random.nextLong(32 * MIB));
      }
    }
    live.forEach(Buffer::close);
  }

  @Test
  void everyFailingCall_leavesNothing_onceTheCudaHasEnded() throws Exception {
    FaultSweep sweep =
        FaultSweeps.onSimulator("seed=1")
            .recoveringFrom(CudaStatus.OUT_OF_MEMORY, "memAddressReserve", "memCreate")
            .recoveringFrom(CudaStatus.OUT_OF_MEMORY, "memMap", "memSetAccess")
            .recoveringFrom(CudaStatus.INVALID_VALUE, "deviceGetAttribute");
    SweepReport report = sweep.run(FaultSweeps.usingTidily(ElasticMemoryPoolTest::use)).orThrow();
    assertThat(report.faults()).isGreaterThan(50);
  }

  private static void use(Cuda cuda) {
    try (CudaStream stream = cuda.device(0).createStream();
        ElasticMemoryPool pool = limited(cuda, 12 * MIB)) {
      try (Buffer first = pool.allocate(5 * MIB, stream);
          Buffer _ = pool.allocate(700, stream)) {
        first.fill((byte) 1, stream);
      }
      stream.synchronize();
      try (Buffer _ = pool.allocate(9 * MIB, stream)) {
        pool.trim(0);
      }
    }
  }
}
