package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Latches;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An elastic pool at its edges: odd sizes, ends at odd moments, and what others refuse. */
class ElasticEdgesTest {
  private static final long MIB = 1L << 20;

  @CudaTest
  void trimToBytesThatAreNoMultiple_releasesWholePieces(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      assertThat(pool).hasToString("ElasticMemoryPool[upstream=virtual memory]");
      pool.allocate(8 * MIB).close();
      cuda.device(0).synchronize();
      assertThat(pool.trim(8 * MIB - 1)).isEqualTo(2 * MIB);
      assertThat(pool.trim(6 * MIB)).isZero();
      assertThat(pool.trim(1)).isEqualTo(6 * MIB);
      pool.assertConsistent();
    }
  }

  /** The first stream's own work is done, but what others queued by its handle is not. */
  @CudaTest(simulatedOnly = true)
  void memoryFreedInAStreamThatOthersUseToo_isNotAnotherStreamsAtOnce(
      Cuda cuda, @NonBlocking CudaStream one, @NonBlocking CudaStream other) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      Buffer first = pool.allocate(4 * MIB, one);
      try (Gate _ = Gate.on(one)) {
        first.close();
        try (Buffer second = pool.allocate(4 * MIB, other)) {
          assertThat(second.address()).isNotEqualTo(first.address());
        }
      }
      one.synchronize();
    }
  }

  /** It is free in all numbers, though other work is still at it. */
  @CudaTest
  void pendingBlock_isAFreeOne_ofItsSize(
      Cuda cuda, @NonBlocking CudaStream own, @NonBlocking CudaStream other) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      Buffer used = pool.allocate(4 * MIB, own);
      PoolStats before = pool.stats();
      try (Gate _ = Gate.on(other)) {
        used.fill((byte) 1, other);
        used.close();
        PoolStats pending = pool.stats();
        assertThat(pending.usedBlocks()).isZero();
        assertThat(pending.freeBlocks()).isEqualTo(before.freeBlocks() + 1);
        assertThat(pending.pendingBytes()).isEqualTo(4 * MIB);
        assertThat(pending.requestedBytes()).isZero();
        assertThat(pending.graphBytes()).isZero();
      }
      other.synchronize();
      Buffer captured = pool.allocate(4 * MIB, own);
      CudaGraph graph = other.capture(() -> captured.fill((byte) 2, other));
      captured.close();
      assertThat(pool.stats().pendingBytes()).isEqualTo(4 * MIB);
      assertThat(pool.stats().graphBytes()).isEqualTo(4 * MIB);
      graph.close();
    }
  }

  @CudaTest
  void limitBelowWhatIsInUse_keepsThat_andThePoolStaysUsable(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer first = pool.allocate(8 * MIB)) {
      pool.allocate(6 * MIB).close();
      pool.setLimit(MemoryLimit.ofBytes(4 * MIB));
      assertThatThrownBy(() -> pool.allocate(30 * MIB)).hasMessageContaining("limit");
      first.fill((byte) 1);
      pool.setLimit(MemoryLimit.ofBytes(10 * MIB));
      try (Buffer second = pool.allocate(2 * MIB)) {
        second.fill((byte) 2);
      }
      assertThatThrownBy(() -> pool.allocate(7 * MIB)).hasMessageContaining("limit");
      pool.setLimit(MemoryLimit.ofBytes(16 * MIB));
      pool.allocate(7 * MIB).close();
      assertThat(pool.totalBytes()).isLessThanOrEqualTo(16 * MIB);
      pool.assertConsistent();
    }
  }

  @CudaTest
  void manyBlocksThatComeBackAtOnce_areReleasedBeyondTheThreshold(
      Cuda cuda, CudaStream one, CudaStream two) {
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withReleaseThresholdBytes(0);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options)) {
      List<Buffer> all = new ArrayList<>();
      for (int i = 0; i < 20_000; i++) {
        Buffer buffer = pool.allocate(512, one);
        buffer.recordUse(two);
        all.add(buffer);
      }
      try (Buffer work = pool.allocate(MIB, two)) {
        work.fill((byte) 1, two);
        all.forEach(Buffer::close);
      }
      cuda.device(0).synchronize();
      assertThat(pool.usedBytes()).isZero();
      pool.allocate(512, one).close();
      assertThat(pool.trim(0) + pool.totalBytes()).isLessThanOrEqualTo(2 * MIB);
      pool.assertConsistent();
    }
  }

  /** The driver is asked without a lock: whoever ends something then cannot see what is made. */
  @ParameterizedTest
  @ValueSource(strings = {"pool", "stream", "nothing"})
  void whateverEndsWhileAddressesAreReserved_endsWhatIsMade(String ended) {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        CudaStream other = cuda.device(0).createStream()) {
      ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
      AtomicBoolean reserved = new AtomicBoolean();
      script.answer(
          "memAddressReserve",
          call -> {
            if (reserved.compareAndSet(false, true)) {
              Thread.ofPlatform()
                  .start(
                      switch (ended) {
                        case "pool" -> pool::close;
                        case "stream" -> stream::close;
                        default -> () -> pool.allocate(512, other).close();
                      })
                  .join();
            }
            return call.proceed();
          });
      if (ended.equals("nothing")) {
        pool.allocate(512, stream).close();
        assertThat(script.count("memAddressReserve")).isEqualTo(2);
        assertThat(script.count("memAddressFree")).as("of the second").isOne();
      } else {
        assertThatThrownBy(() -> pool.allocate(512, stream))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("is closed");
      }
      pool.close();
      assertThat(script.count("memAddressFree")).isEqualTo(script.count("memAddressReserve"));
    }
  }

  /** A wait covers what was freed before, and nothing of what came meanwhile. */
  @Test
  void memoryFreedWhileItsStreamIsAwaited_isNotGivenToAnotherWithoutAWait() {
    ScriptedDriver script = new ScriptedDriver();
    script.answer("streamQuery", _ -> false); // work is known to be done by a wait alone
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream two = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      pool.setLimit(MemoryLimit.ofBytes(10 * MIB));
      Buffer[] all = new Buffer[5];
      Arrays.setAll(all, _ -> pool.allocate(2 * MIB, one));
      Buffer before = all[0];
      List<Buffer> meanwhile = List.of(all[2], all[4]); // what lies between keeps them apart
      before.fill((byte) 1, one);
      before.close();
      AtomicBoolean awaited = new AtomicBoolean();
      script.answer(
          "eventSynchronize",
          call -> {
            Object answer = call.proceed();
            if (awaited.compareAndSet(false, true)) {
              meanwhile.forEach(buffer -> buffer.fill((byte) 2, one));
              meanwhile.forEach(Buffer::close);
            }
            return answer;
          });
      try (Buffer _ = pool.allocate(2 * MIB, two)) {
        assertThat(script.count("eventSynchronize")).isOne();
        try (Buffer _ = pool.allocate(2 * MIB, two)) {
          assertThat(script.count("eventSynchronize")).isEqualTo(2);
        }
      }
      List.of(all[1], all[3]).forEach(Buffer::close);
    }
  }

  /** That a stream is idle covers what was freed before, and nothing of what came meanwhile. */
  @Test
  void memoryFreedWhileItsStreamIsAskedAbout_isNotGivenToAnother() {
    ScriptedDriver script = new ScriptedDriver();
    CountDownLatch over = new CountDownLatch(1);
    CudaOptions eager = CudaOptions.simulated().withDevice("sim:pace=eager");
    try (Cuda cuda = Cuda.open(eager.withDecorator(script::over));
        CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream two = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      Buffer before = pool.allocate(2 * MIB, one);
      Buffer between = pool.allocate(2 * MIB, one);
      Buffer meanwhile = pool.allocate(2 * MIB, one);
      before.fill((byte) 1, one);
      before.close();
      AtomicBoolean asked = new AtomicBoolean();
      script.answer(
          "streamQuery",
          call -> {
            Object answer = call.proceed();
            if (asked.compareAndSet(false, true)) {
              var _ = one.addCallback(() -> Latches.await(over));
              meanwhile.fill((byte) 2, one);
              meanwhile.close();
            }
            return answer;
          });
      try (Buffer first = pool.allocate(2 * MIB, two);
          Buffer second = pool.allocate(2 * MIB, two)) {
        assertThat(asked).isTrue();
        assertThat(first.address()).isEqualTo(before.address());
        assertThat(second.address()).isNotEqualTo(meanwhile.address());
      } finally {
        over.countDown();
      }
      between.close();
    }
  }

  /** Pieces that are on their way are in no space of the pool, and mapped all the same. */
  @Test
  void booksAreChecked_whilePiecesMove() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      pool.setLimit(MemoryLimit.ofBytes(10 * MIB));
      Buffer[] all = new Buffer[5];
      Arrays.setAll(all, _ -> pool.allocate(2 * MIB));
      List.of(all[0], all[2]).forEach(Buffer::close);
      cuda.device(0).synchronize();
      List<Throwable> wrong = new CopyOnWriteArrayList<>();
      AtomicInteger moved = new AtomicInteger();
      script.answer(
          "memUnmap",
          call -> {
            moved.incrementAndGet();
            Thread checks = Thread.ofPlatform().unstarted(pool::assertConsistent);
            checks.setUncaughtExceptionHandler((_, e) -> wrong.add(e));
            checks.start();
            checks.join();
            return call.proceed();
          });
      try (Buffer _ = pool.allocate(4 * MIB)) {
        assertThat(moved).hasPositiveValue();
        assertThat(wrong).isEmpty();
      }
      List.of(all[1], all[3], all[4]).forEach(Buffer::close);
    }
  }

  /** Who closes the pool cannot give back what the thread that maps holds. */
  @Test
  void poolThatIsClosedWhileMemoryCannotBeMapped_givesItsAddressesBack() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
      script.answer(
          "memCreate",
          call -> {
            Thread.ofPlatform().start(pool::close).join();
            throw new CudaException(CudaStatus.UNKNOWN, call.name(), "scripted by the test");
          });
      assertThatThrownBy(() -> pool.allocate(512)).isInstanceOf(CudaException.class);
      assertThat(script.count("memAddressReserve")).isOne();
      assertThat(script.count("memAddressFree")).isOne();
    }
  }

  /** What it takes from elsewhere first, nobody may map again. */
  @Test
  void poolThatIsClosedBeforeMemoryIsMapped_mapsNone() {
    ScriptedDriver script = new ScriptedDriver();
    ElasticPoolOptions limited =
        ElasticPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(8 * MIB));
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      ElasticMemoryPool pool = new ElasticMemoryPool(cuda, limited);
      pool.allocate(8 * MIB).close();
      cuda.currentStream().synchronize();
      script.answer(
          "memUnmap",
          call -> {
            script.unscript("memUnmap");
            Thread.ofPlatform().start(pool::close).join();
            return call.proceed();
          });
      long mapped = script.count("memMap");
      assertThatThrownBy(() -> pool.allocate(512))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
      assertThat(script.count("memMap")).isEqualTo(mapped);
      assertThat(script.count("memAddressFree")).isOne();
    }
  }

  @CudaTest
  void streamsThatComeAndGo_leaveNothingBehind(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      List<Buffer> kept = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        try (CudaStream stream = cuda.device(0).createStream()) {
          Buffer buffer = pool.allocate(MIB, stream);
          buffer.fill((byte) i, stream);
          kept.add(buffer); // outlives its stream
        }
        if (kept.size() > 3) {
          kept.removeFirst().close();
        }
        if (i % 8 == 7) {
          cuda.device(0).synchronize();
        }
      }
      kept.forEach(Buffer::close);
      assertThat(pool.totalBytes()).isLessThanOrEqualTo(64 * MIB);
      cuda.device(0).synchronize();
      pool.freeAllBlocks();
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest
  void memoryOfAGraph_staysMapped_untilTheGraphIsGone(Cuda cuda, CudaStream stream) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      try (CudaGraphExec graph = capture(pool, stream)) {
        pool.trim(0);
        long kept = pool.totalBytes();
        assertThat(kept).isGreaterThanOrEqualTo(4 * MIB);
        assertThat(pool.fragmentation().graphBytes()).isGreaterThanOrEqualTo(4 * MIB);
        assertThat(pool.fragmentation().orderedBytes()).isZero();
        assertThat(pool.stats().graphBytes()).isGreaterThanOrEqualTo(4 * MIB);
        assertThat(pool.stats().releasableBytes()).isZero();
        for (int i = 0; i < 3; i++) {
          graph.launch(stream);
          pool.allocate(4 * MIB, stream).close();
        }
        stream.synchronize();
      }
      cuda.device(0).synchronize();
      pool.trim(0);
      assertThat(pool.totalBytes()).isZero();
      pool.assertConsistent();
    }
  }

  private static CudaGraphExec capture(ElasticMemoryPool pool, CudaStream stream) {
    try (CudaGraph graph =
        stream.capture(() -> {
          try (Buffer inside = pool.allocate(4 * MIB, stream)) {
            inside.fill((byte) 1, stream);
          }
        })) {
      return graph.instantiate();
    }
  }

  @CudaTest
  void memory_cannotBeShared(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer buffer = pool.allocate(MIB)) {
      assertThatThrownBy(buffer::descriptor)
          .hasMessageContaining("cannot be shared between processes");
    }
  }

  @Test
  void poolOfTwoDevices_keepsThemApart() {
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim:devices=2"))) {
      ElasticMemoryPool pool =
          new ElasticMemoryPool(
              cuda, ElasticPoolOptions.DEFAULTS.withPeers(cuda.device(0), cuda.device(1)));
      Buffer first = pool.allocate(MIB, cuda.device(0).nullStream());
      Buffer second = pool.allocate(3 * MIB, cuda.device(1).nullStream());
      assertThat(pool.stats(cuda.device(0)).heldBytes()).isEqualTo(2 * MIB);
      assertThat(pool.stats(cuda.device(1)).heldBytes()).isEqualTo(4 * MIB);
      pool.close();
      first.close();
      second.close();
      assertThat(pool.stats(cuda.device(1)).heldBytes()).isZero();
      assertThatThrownBy(() -> pool.allocate(1)).hasMessageContaining("is closed");
    }
  }
}
