package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Capture;
import io.cuvette.testkit.support.Latches;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Memory is not handed out while another stream may still use it. Gates leave work queued. */
class CrossStreamTest {
  private static final int QUEUED = 200;
  private static final long LARGE = 2 << 20;

  @CudaTest
  void bufferClosedWhileAnotherStreamUsesIt_waitsForThatUse(
      MemoryPool pool, CudaStream own, CudaStream other) {
    Buffer used = pool.allocate(4 * UNIT, own);
    Gate gate = Gate.on(other);
    fillOften(used, other);
    used.close();
    checkNotHandedOut(pool, own, used);
    gate.open();
    other.synchronize();
    assertThat(pool.stats().pendingBytes()).isZero();
    assertThat(pool.freeAllBlocks()).isEqualTo(8 * UNIT);
  }

  @CudaTest
  void recordedUse_isWaitedForToo(Cuda cuda, MemoryPool pool, CudaStream own, CudaStream other) {
    try (Buffer unrelated = cuda.allocate(64)) {
      Buffer used = pool.allocate(4 * UNIT, own);
      Gate gate = Gate.on(other);
      fillOften(unrelated, other);
      used.slice(UNIT, UNIT).recordUse(other);
      used.close();
      checkNotHandedOut(pool, own, used);
      gate.open();
      other.synchronize();
      assertThat(pool.stats().pendingBytes()).isZero();
    }
  }

  /** A use of a slice is a use of the buffer; a copy is a use of both its ends. */
  @CudaTest
  void copyBetweenSlices_holdsBothBuffersBack(MemoryPool pool, CudaStream own, CudaStream other) {
    Buffer source = pool.allocate(4 * UNIT, own);
    Buffer target = pool.allocate(4 * UNIT, own);
    Gate gate = Gate.on(other);
    for (int i = 0; i < QUEUED; i++) {
      target.slice(UNIT, UNIT).copyFrom(source.slice(2 * UNIT, UNIT), other);
    }
    source.close();
    target.close();
    assertThat(pool.stats().pendingBytes()).isEqualTo(8 * UNIT);
    assertThat(pool.stats().freeBytes()).isEqualTo(8 * UNIT);
    assertThat(pool.stats().usedBytes()).isZero();
    gate.open();
    other.synchronize();
    assertThat(pool.stats().pendingBytes()).isZero();
  }

  @CudaTest
  void useThatIsDone_holdsNothingBack(MemoryPool pool, CudaStream other) {
    Buffer used = pool.allocate(4 * UNIT);
    used.fill((byte) 1, other);
    other.synchronize();
    used.close();
    assertThat(pool.stats().pendingBytes()).isZero();
    try (Buffer again = pool.allocate(4 * UNIT)) {
      assertThat(again.address()).isEqualTo(used.address());
    }
  }

  @CudaTest
  void useOnItsOwnStream_needsNoWait(MemoryPool pool, CudaStream own) {
    Buffer used = pool.allocate(4 * UNIT, own);
    Gate gate = Gate.on(own);
    fillOften(used, own);
    used.close();
    try (Buffer again = pool.allocate(4 * UNIT, own)) {
      assertThat(again.address()).isEqualTo(used.address());
      assertThat(own.isDone()).isFalse();
    } finally {
      gate.open();
    }
  }

  /** It came to the taker as that waits for its last user, of which the third knows nothing. */
  @CudaTest(simulatedOnly = true)
  void restOfAChunkThatAStreamTook_isNotForWhoKnewThatStreamBefore(
      Cuda cuda, CudaStream held, CudaStream taker, CudaStream third) {
    CountDownLatch gate = new CountDownLatch(1);
    CudaStream gone = cuda.device(0).createStream();
    PoolOptions options = PoolOptions.DEFAULTS.withCrossStreamBytes(0);
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      Buffer used = pool.allocate(4 * UNIT, gone);
      pool.allocate(UNIT, taker).close();
      third.waitFor(taker);
      CompletableFuture<Void> opened = held.addCallback(() -> Latches.await(gate));
      gone.waitFor(held);
      used.fill((byte) 1, gone);
      used.close();
      taker.waitFor(gone);
      gone.close();
      try (Buffer first = pool.allocate(2 * UNIT, taker);
          Buffer other = pool.allocate(2 * UNIT, third)) {
        assertThat(first.address()).isEqualTo(used.address());
        assertThat(other.address()).isNotEqualTo(used.address() + 2 * UNIT);
        third.waitFor(taker);
        try (Buffer rest = pool.allocate(2 * UNIT, third)) {
          assertThat(rest.address()).isEqualTo(used.address() + 2 * UNIT);
        }
      } finally {
        gate.countDown();
      }
      opened.join();
    }
  }

  /** Nobody numbers the work of a stream that others have: an event tells when it is done. */
  @CudaTest
  void partLentToAStreamThatOthersHave_comesBackBehindItsWork(
      Cuda cuda, CudaStream own, CudaStream other) {
    PoolOptions options = PoolOptions.DEFAULTS.withCrossStreamBytes(0);
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      Buffer whole = pool.allocate(4 * UNIT, own);
      whole.close();
      own.synchronize();
      assertThat(other.handle()).isNotZero();
      Buffer part = pool.allocate(UNIT, other);
      assertThat(part.address()).isEqualTo(whole.address());
      try (Gate gate = Gate.on(other)) {
        fillOften(part, other);
        part.close();
        assertThat(pool.stats().pendingBytes()).isEqualTo(UNIT);
        try (Buffer next = pool.allocate(4 * UNIT, own)) {
          assertThat(next.address()).isNotEqualTo(whole.address());
        }
        gate.open();
      }
      other.synchronize();
      assertThat(pool.stats().pendingBytes()).isZero();
    }
  }

  /** Upstream has it back in order of the stream it was asked for, which knows nothing of that. */
  @CudaTest(simulatedOnly = true)
  void chunkThatAnotherStreamTook_goesBackToUpstreamBehindItsWork(
      Cuda cuda, ScriptedDriver driver, CudaStream own, CudaStream other) {
    PoolOptions options =
        PoolOptions.DEFAULTS.withCrossStreamBytes(0).withUpstream(MemoryResource.async());
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      pool.allocate(4 * UNIT, own).close();
      own.synchronize();
      Buffer taken = pool.allocate(4 * UNIT, other);
      assertThat(pool.stats().chunks()).isEqualTo(1);
      try (Gate _ = Gate.on(other)) {
        taken.fill((byte) 1, other);
        taken.close();
        driver.note("streamWaitEvent", "memFreeAsync");
        assertThat(pool.freeAllBlocks()).isEqualTo(4 * UNIT);
        assertThat(driver.takeNotes()).containsExactly("streamWaitEvent", "memFreeAsync");
      }
      other.synchronize();
    }
  }

  /** Who frees it waits for nothing, so the work of the pool's streams is waited for before. */
  @CudaTest(simulatedOnly = true)
  void chunkThatOthersFree_goesBackAfterTheWorkOnIt(
      Cuda cuda, ScriptedDriver driver, CudaStream own) {
    AtomicBoolean waits = new AtomicBoolean();
    List<Boolean> freed = new ArrayList<>();
    try (Buffer memory = cuda.allocate(4 * UNIT)) {
      PoolOptions options =
          PoolOptions.DEFAULTS.withUpstream((bytes, _) ->
              cuda.device(0).adopt(memory.address(), bytes, () -> freed.add(waits.get())));
      try (MemoryPool pool = new MemoryPool(cuda, options);
          Gate gate = Gate.on(own)) {
        for (String wait : new String[] {"eventSynchronize", "streamSynchronize"}) {
          driver.answer(
              wait,
              call -> {
                waits.set(true);
                gate.open();
                return call.proceed();
              });
        }
        Buffer used = pool.allocate(4 * UNIT, own);
        used.fill((byte) 1, own);
        used.close();
        assertThat(pool.freeAllBlocks()).isEqualTo(4 * UNIT);
      }
    }
    assertThat(freed).containsExactly(true);
  }

  /** Whatever the order of streams, the late reader sees the old bytes. */
  @CudaTest(seeds = 40)
  void lateReaderOnAnotherStream_neverSeesTheNextOwnersBytes(
      Cuda cuda, @NonBlocking CudaStream own, @NonBlocking CudaStream other) {
    int bytes = 4096;
    try (Buffer copy = cuda.allocate(bytes, other)) {
      Buffer old = cuda.allocate(bytes, own);
      old.fill((byte) 1, own);
      other.waitFor(own);
      copy.copyFrom(old, other);
      old.close();
      for (int i = 0; i < 5; i++) {
        try (Buffer next = cuda.allocate(bytes, own)) {
          next.fill((byte) 9, own);
        }
      }
      own.synchronize();
      other.synchronize();
      assertThat(Bytes.of(copy)).containsOnly(1);
    }
  }

  @CudaTest
  void largeCachedChunkOfAnIdleStream_movesToTheAskingOne(
      MemoryPool pool, CudaStream one, CudaStream two) {
    Buffer first = pool.allocate(LARGE, one);
    first.close();
    try (Buffer second = pool.allocate(LARGE, two)) {
      assertThat(second.address()).isEqualTo(first.address());
      assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
      assertThat(pool.totalBytes()).isEqualTo(LARGE);
    }
  }

  @CudaTest
  void aPartOfAChunk_isLent_soItsStreamNeedNotGrow(
      MemoryPool pool, CudaStream own, CudaStream other) {
    pool.allocate(4 * LARGE, own).close();
    own.synchronize();
    try (Buffer lent = pool.allocate(LARGE, other)) {
      assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
      Gate gate = Gate.on(other);
      fillOften(lent, other);
      try (Buffer rest = pool.allocate(3 * LARGE, own)) {
        assertThat(pool.totalBytes()).isEqualTo(4 * LARGE);
        rest.fill((byte) 1, own);
      }
      gate.open();
    }
    other.synchronize();
    pool.allocate(4 * LARGE, own).close(); // what was lent is back, and has merged
    assertThat(pool.totalBytes()).isEqualTo(4 * LARGE);
    assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
    pool.assertConsistent();
  }

  /** Its own stream would grow by all of it, for little. */
  @CudaTest
  void aBlockOfMoreThanEightTimesTheRequest_staysWithItsStream(
      MemoryPool pool, CudaStream own, CudaStream other) {
    pool.allocate(8 * LARGE + UNIT, own).close();
    own.synchronize();
    try (Buffer _ = pool.allocate(LARGE, other)) {
      assertThat(pool.stats().crossStreamReuses()).isZero();
      try (Buffer _ = pool.allocate(UNIT, own);
          Buffer _ = pool.allocate(LARGE, other)) { // of 8 times as much now
        assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
      }
    }
  }

  /** Also where no question is needed. */
  @CudaTest
  void aBlockOfMoreThanEightTimesTheRequest_staysThere_thoughItIsKnownToBeFree(
      Cuda cuda, @NonBlocking CudaStream own, @NonBlocking CudaStream other) {
    for (long extra : new long[] {UNIT, 0}) {
      try (MemoryPool pool = new MemoryPool(cuda)) {
        Buffer large = pool.allocate(8 * LARGE + extra, own);
        large.fill((byte) 1, own);
        large.close();
        other.waitFor(own);
        try (Buffer _ = pool.allocate(LARGE, other)) {
          assertThat(pool.stats().crossStreamReuses()).isEqualTo(extra == 0 ? 1 : 0);
        }
      }
    }
  }

  /** Nobody wants the rest of it there. */
  @CudaTest
  void aChunkOfAClosedStream_movesEntire(Cuda cuda, MemoryPool pool, CudaStream other) {
    try (CudaStream closed = cuda.device(0).createStream()) {
      pool.allocate(4 * LARGE, closed).close();
      closed.synchronize();
    }
    pool.allocate(LARGE, other).close();
    pool.allocate(4 * LARGE, other).close();
    assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
    assertThat(pool.totalBytes()).isEqualTo(4 * LARGE);
  }

  @CudaTest
  void largeCachedChunkOfABusyStream_staysThere(
      MemoryPool pool, CudaStream busy, CudaStream asking) {
    Buffer first = pool.allocate(LARGE, busy);
    try (Gate _ = Gate.on(busy)) {
      fillOften(first, busy);
      first.close();
      try (Buffer second = pool.allocate(LARGE, asking)) {
        assertThat(second.address()).isNotEqualTo(first.address());
        assertThat(pool.stats().crossStreamReuses()).isZero();
      }
    }
  }

  @CudaTest
  void sharingBetweenStreams_canBeSwitchedOff(Cuda cuda, CudaStream one) {
    PoolOptions options = PoolOptions.DEFAULTS.withCrossStreamBytes(Long.MAX_VALUE);
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      pool.allocate(LARGE, one).close();
      try (Buffer _ = pool.allocate(LARGE)) {
        assertThat(pool.stats().growths()).isEqualTo(2);
      }
    }
  }

  @CudaTest
  void sharingBetweenStreams_beginsWithTheSizeThatIsSet(
      Cuda cuda, CudaStream one, CudaStream other) {
    PoolOptions options = PoolOptions.DEFAULTS.withCrossStreamBytes(4 * UNIT);
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      for (long bytes : new long[] {UNIT, 3 * UNIT, 3 * UNIT + 1, 4 * UNIT, 5 * UNIT}) {
        pool.allocate(bytes, one).close();
        long before = pool.stats().crossStreamReuses();
        try (Buffer _ = pool.allocate(bytes, other)) {
          assertThat(pool.stats().crossStreamReuses() - before)
              .as("%d bytes", bytes)
              .isEqualTo(bytes > 3 * UNIT ? 1 : 0);
        }
        pool.freeAllBlocks();
      }
    }
  }

  @CudaTest
  void bufferUsedInACapture_isNotHandedOutBeforeTheCaptureEnds(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream own, @NonBlocking CudaStream captured) {
    Buffer used = pool.allocate(4 * UNIT, own);
    Capture.of(
        captured,
        () -> {
          used.fill((byte) 1, captured);
          used.close();
          checkNotHandedOut(pool, own, used);
        });
    cuda.device(0).synchronize();
    assertThat(pool.stats().pendingBytes()).isZero();
    assertThat(pool.freeAllBlocks()).isEqualTo(8 * UNIT);
  }

  @CudaTest
  void memoryOfACapturingStream_isNotTakenByOthers(
      MemoryPool pool, @NonBlocking CudaStream asking, @NonBlocking CudaStream captured) {
    Buffer cached = pool.allocate(LARGE, captured);
    Capture.of(
        captured,
        () -> {
          cached.fill((byte) 1, captured);
          cached.close();
          try (Buffer other = pool.allocate(LARGE, asking)) {
            assertThat(other.address()).isNotEqualTo(cached.address());
          }
        });
    assertThat(captured.isCapturing()).isFalse();
  }

  @CudaTest(devices = 2)
  void useOnAnotherDevicesStream_isWaitedFor(
      Cuda cuda, MemoryPool pool, @OnDevice(1) CudaStream far) {
    try (Buffer target = pool.allocate(4 * UNIT, far)) {
      CudaStream near = cuda.device(0).nullStream();
      Buffer source = pool.allocate(4 * UNIT, near);
      Gate gate = Gate.on(far);
      for (int i = 0; i < QUEUED; i++) {
        target.copyFrom(source, far);
      }
      source.close();
      checkNotHandedOut(pool, near, source);
      gate.open();
      far.synchronize();
      assertThat(pool.stats(cuda.device(0)).pendingBytes()).isZero();
    }
  }

  /** That a stream is idle says nothing of what it got after it was asked. */
  @Test
  @Tag("simulated")
  void bufferClosedWhileItsStreamIsAskedAbout_isNotHandedToAnother() {
    ScriptedDriver script = new ScriptedDriver();
    CudaOptions eager = CudaOptions.simulated().withDevice("sim:pace=eager");
    try (Cuda cuda = Cuda.open(eager.withDecorator(script::over));
        CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        MemoryPool pool = new MemoryPool(cuda)) {
      Buffer before = pool.allocate(4 * LARGE, one);
      Buffer between = pool.allocate(LARGE, one);
      Buffer meanwhile = pool.allocate(2 * LARGE, one); // fits better
      Buffer behind = pool.allocate(LARGE, one);
      before.fill((byte) 1, one);
      before.close();
      List<Gate> gates = new ArrayList<>();
      script.answer(
          "streamQuery",
          call -> {
            Object answer = call.proceed();
            if (gates.isEmpty()) {
              gates.add(Gate.on(one));
              meanwhile.fill((byte) 2, one);
              meanwhile.close();
            }
            return answer;
          });
      try (Buffer next = pool.allocate(2 * LARGE, other)) {
        assertThat(gates).hasSize(1);
        assertThat(next.address()).isNotEqualTo(meanwhile.address());
      } finally {
        gates.forEach(Gate::open);
      }
      between.close();
      behind.close();
    }
  }

  private static void fillOften(Buffer buffer, CudaStream stream) {
    for (int i = 0; i < QUEUED; i++) {
      buffer.fill((byte) i, stream);
    }
  }

  private static void checkNotHandedOut(MemoryPool pool, CudaStream stream, Buffer closed) {
    assertThat(pool.stats(stream.device()).pendingBytes()).isEqualTo(closed.blockBytes());
    try (Buffer next = pool.allocate(closed.byteSize(), stream)) {
      assertThat(next.address()).isNotEqualTo(closed.address());
    }
    assertThat(pool.stats(stream.device()).pendingBytes()).isEqualTo(closed.blockBytes());
  }
}
