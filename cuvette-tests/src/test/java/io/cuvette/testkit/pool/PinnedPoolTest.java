package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PinnedPoolStats;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.OneChunk;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

class PinnedPoolTest {
  private static final int QUEUED = 200;

  @CudaTest
  void blocks_wasteAtMostAnEighth_orPartOf512(Subject subject) {
    try (PinnedMemoryPool pool = new PinnedMemoryPool(subject.cuda())) {
      var random = subject.random();
      for (int i = 0; i < 60; i++) {
        long bytes = 1 + random.nextLong(1L << (4 + i % 20));
        try (PinnedBuffer buffer = pool.allocate(bytes)) {
          long waste = buffer.blockBytes() - bytes;
          assertThat(buffer.byteSize()).isEqualTo(bytes);
          assertThat(waste).as("of %d bytes", bytes).isGreaterThanOrEqualTo(0);
          assertThat(waste < 512 || waste * 8 <= bytes).as("%d for %d", waste, bytes).isTrue();
        }
        pool.freeAllBlocks();
      }
    }
  }

  @CudaTest
  void memoryOfAnotherCuda_isRefused_byPoolsAndAllocators(Subject subject) {
    Cuda cuda = subject.cuda();
    try (Cuda other = Cuda.open(CudaOptions.simulated());
        PinnedMemoryPool pool =
            new PinnedMemoryPool(
                cuda, PinnedPoolOptions.DEFAULTS.withUpstream(other.directPinned()))) {
      assertThatThrownBy(() -> pool.allocate(100))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("memory of the same Cuda");
      assertThat(pool.totalBytes()).isZero();
      cuda.setPinnedAllocator(other.directPinned());
      assertThatThrownBy(() -> cuda.allocatePinned(100))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("memory of the same Cuda");
      cuda.setPinnedAllocator(cuda.defaultPinnedMemoryPool());
    }
  }

  @CudaTest
  void classes_areNotPowersOfTwo(PinnedMemoryPool pool) {
    try (PinnedBuffer buffer = pool.allocate((1 << 20) + 1)) {
      assertThat(buffer.blockBytes()).isLessThanOrEqualTo((1 << 20) + (1 << 17));
    }
  }

  @CudaTest
  void liveBuffers_haveDifferentMemory(PinnedMemoryPool pool) {
    Set<Long> addresses = new HashSet<>();
    List<PinnedBuffer> buffers = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      PinnedBuffer buffer = pool.allocate(700);
      assertThat(addresses.add(buffer.address())).isTrue();
      buffers.add(buffer);
    }
    buffers.forEach(Buffer::close);
  }

  @CudaTest
  void blockFreedLast_isHandedOutFirst(PinnedMemoryPool pool) {
    PinnedBuffer a = pool.allocate(UNEVEN);
    PinnedBuffer b = pool.allocate(UNEVEN);
    a.close();
    b.close();
    try (PinnedBuffer first = pool.allocate(UNEVEN);
        PinnedBuffer second = pool.allocate(UNEVEN)) {
      assertThat(first.address()).isEqualTo(b.address());
      assertThat(second.address()).isEqualTo(a.address());
      assertThat(pool.stats().growths()).isEqualTo(2);
    }
  }

  @CudaTest
  void otherSizeClass_isNotServed(PinnedMemoryPool pool) {
    PinnedBuffer large = pool.allocate(8192);
    large.close();
    try (PinnedBuffer small = pool.allocate(UNIT)) {
      assertThat(small.address()).isNotEqualTo(large.address());
    }
  }

  @CudaTest
  void everyNumber_isExact(PinnedMemoryPool pool) {
    assertThat(pool.freeBlocks()).isZero();
    PinnedBuffer a = pool.allocate(100);
    pool.allocate(1024).close();
    PinnedPoolStats expected =
        new PinnedPoolStats(512, 1024, 1536, 100, 0, 1, 1, 1536, 1536, 2, 2, 0, Long.MAX_VALUE);
    assertThat(pool.stats()).isEqualTo(expected);
    assertThat(pool.usedBytes()).isEqualTo(512);
    assertThat(pool.freeBytes()).isEqualTo(1024);
    assertThat(pool.totalBytes()).isEqualTo(1536);
    assertThat(pool.freeBlocks()).isEqualTo(1);
    a.close();
    assertThat(pool.freeBlocks()).isEqualTo(2);
    assertThat(pool.freeAllBlocks()).isEqualTo(1536);
    assertThat(pool.totalBytes()).isZero();
    assertThat(pool.freeBlocks()).isZero();
    assertThat(pool.freeAllBlocks()).isZero();
  }

  @CudaTest
  void requestedBytes_areThoseOfTheBuffersInUse(PinnedMemoryPool pool) {
    PinnedBuffer first = pool.allocate(100);
    PinnedBuffer second = pool.allocate(300);
    assertThat(pool.stats().requestedBytes()).isEqualTo(400);
    first.close();
    assertThat(pool.stats().requestedBytes()).isEqualTo(300);
    second.close();
    assertThat(pool.stats().requestedBytes()).isZero();
  }

  @CudaTest
  void countsAndPeaks_areThereOnceTheCudaIsClosed(Subject subject) {
    Cuda cuda = subject.open(defaults -> defaults.withLeakLevel(LeakLevel.OFF));
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
    PinnedBuffer _ = pool.allocate(1024);
    pool.allocate(2048).close();
    cuda.close();
    PinnedPoolStats expected =
        new PinnedPoolStats(0, 0, 0, 0, 0, 0, 0, 3072, 3072, 2, 2, 0, Long.MAX_VALUE);
    assertThat(pool.stats()).isEqualTo(expected);
  }

  @CudaTest
  void limit_isHard_andCachedBlocksMakeRoom(Cuda cuda) {
    try (PinnedMemoryPool pool = limited(cuda, 4096)) {
      pool.allocate(2048).close();
      try (PinnedBuffer all = pool.allocate(4096)) {
        assertThat(pool.totalBytes()).isEqualTo(4096);
        assertThatThrownBy(() -> pool.allocate(1))
            .isInstanceOf(OutOfPinnedMemoryException.class)
            .hasMessageContainingAll("requested=1", "held=4096", "used=4096", "limit=4096");
        assertThat(pool.stats().outOfMemories()).isEqualTo(1);
        assertThat(all.byteSize()).isEqualTo(4096);
      }
      pool.setLimit(MemoryLimit.none());
      pool.allocate(100_000).close();
      assertThat(pool.limit()).isEqualTo(MemoryLimit.none());
    }
  }

  /** Both have one upstream, which gives one chunk at a time. */
  @CudaTest
  void cachesOfOtherPools_areReleased_ifUpstreamIsShort(Cuda cuda) {
    OneChunk upstream = new OneChunk(cuda);
    PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withUpstream(upstream);
    try (PinnedMemoryPool idle = new PinnedMemoryPool(cuda, options);
        PinnedMemoryPool pool =
            new PinnedMemoryPool(cuda, options.withLimit(MemoryLimit.ofBytes(512)))) {
      idle.allocate(512).close();
      pool.allocate(512).close();
      assertThat(idle.totalBytes()).isZero();
      assertThat(upstream.count()).isEqualTo(2);
    }
  }

  @CudaTest
  void cachesOfOtherPools_areKept_ifOnlyTheLimitIsShort(Cuda cuda, PinnedMemoryPool idle) {
    idle.allocate(512).close();
    PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(512));
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options);
        PinnedBuffer _ = pool.allocate(512)) {
      assertThatThrownBy(() -> pool.allocate(512)).isInstanceOf(OutOfPinnedMemoryException.class);
      assertThat(idle.totalBytes()).isEqualTo(512);
    }
  }

  @CudaTest
  void fractionOfHostMemory_isRefused(Cuda cuda) {
    MemoryLimit half = MemoryLimit.ofFraction(0.5);
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      assertThatThrownBy(() -> pool.setLimit(half))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("expected: bytes or none");
    }
    assertThatThrownBy(() -> PinnedPoolOptions.DEFAULTS.withLimit(half))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** The block is what counts, not what is asked for of it: nothing is tried in vain. */
  @CudaTest
  void blockBeyondTheLimit_isRefusedAtOnce(Cuda cuda) {
    try (PinnedMemoryPool pool = limited(cuda, 4000)) {
      assertThatThrownBy(() -> pool.allocate(4000))
          .isInstanceOf(OutOfPinnedMemoryException.class)
          .hasMessageContaining("requested=4000, block=4096, limit=4000")
          .hasMessageContaining("tried up to: the limit");
    }
  }

  @CudaTest
  void blockOfARunningCopy_isNotHandedOut(Cuda cuda, PinnedMemoryPool pool, CudaStream stream) {
    try (Buffer target = cuda.allocate(4096)) {
      PinnedBuffer source = pool.allocate(4096);
      Gate gate = Gate.on(stream);
      for (int i = 0; i < QUEUED; i++) {
        target.copyFrom(source, stream);
      }
      source.close();
      assertThat(pool.stats().pendingBytes()).isEqualTo(4096);
      assertThat(pool.stats().requestedBytes()).isZero();
      assertThat(pool.stats().usedBlocks()).isZero();
      assertThat(pool.stats().freeBlocks()).isOne();
      assertThat(pool.freeBytes()).isEqualTo(4096);
      PinnedBuffer next = pool.allocate(4096);
      assertThat(next.address()).isNotEqualTo(source.address());
      gate.open();
      stream.synchronize();
      assertThat(pool.stats().pendingBytes()).isZero();
      try (PinnedBuffer again = pool.allocate(4096)) {
        assertThat(again.address()).isEqualTo(source.address());
      }
      next.close();
    }
  }

  /** Closed at once and written by the next owner: the copy must have taken the old bytes. */
  @CudaTest(seeds = 40)
  void copyThatIsStillQueued_bringsTheBytesItWasGiven(Cuda cuda, CudaStream stream) {
    try (Buffer target = cuda.allocate(4096)) {
      PinnedBuffer source = cuda.allocatePinned(4096);
      source.segment().fill((byte) 1);
      target.copyFrom(source, stream);
      source.close();
      for (int i = 0; i < 3; i++) {
        try (PinnedBuffer next = cuda.allocatePinned(4096)) {
          next.segment().fill((byte) 9);
        }
      }
      stream.synchronize();
      assertThat(Bytes.of(target)).containsOnly(1);
    }
  }

  @CudaTest
  void fullPool_waitsForTheCopies(Cuda cuda, CudaStream stream) {
    try (PinnedMemoryPool pool = limited(cuda, 4096);
        Buffer target = cuda.allocate(4096)) {
      PinnedBuffer source = pool.allocate(4096);
      for (int i = 0; i < QUEUED; i++) {
        target.copyFrom(source, stream);
      }
      source.close();
      try (PinnedBuffer next = pool.allocate(4096)) {
        assertThat(next.byteSize()).isEqualTo(4096);
        assertThat(stream.isDone()).isTrue();
      }
    }
  }

  @CudaTest(tidy = false)
  void fullPool_reclaimsForgottenBuffers(Subject subject) throws InterruptedException {
    try (PinnedMemoryPool pool = limited(subject.cuda(), 4096)) {
      Forgetting.of(() -> pool.allocate(4096));
      Forgetting.retry(() -> pool.allocate(4096)).close();
      assertThat(subject.cuda().leaksFound()).isEqualTo(1);
    }
  }

  @CudaTest
  void customUpstream_isAskedForTheClassSize(Cuda cuda) {
    AtomicInteger asked = new AtomicInteger();
    PinnedPoolOptions options =
        PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> {
          asked.incrementAndGet();
          assertThat(bytes).isEqualTo(1024);
          return cuda.directPinned().allocate(bytes);
        });
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      pool.allocate(UNEVEN).close();
      pool.allocate(1024).close();
      assertThat(asked).hasValue(1);
    }
  }

  @CudaTest
  void wrongSizes_areRefused(PinnedMemoryPool pool) {
    assertThatThrownBy(() -> pool.allocate(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("bytes: -1 (expected: >= 0)");
    for (long huge : new long[] {1L << 50, 1L << 60}) {
      assertThatThrownBy(() -> pool.allocate(huge))
          .as("%d bytes", huge)
          .isInstanceOf(OutOfPinnedMemoryException.class)
          .hasMessageContaining("requested=" + huge);
    }
    assertThatThrownBy(() -> pool.allocate(Long.MAX_VALUE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("bytes: 9223372036854775807");
    assertThat(pool.totalBytes()).isZero();
    pool.allocate(1).close();
  }

  /** What streams have done since is free by then, though nobody has looked. */
  @CudaTest(simulatedOnly = true)
  void poolThatIsClosed_givesBackWhatWaited_ifTheWorkIsDone(
      Subject subject, Cuda cuda, CudaStream stream) {
    try (Buffer target = cuda.allocate(4096)) {
      PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
      PinnedBuffer used = pool.allocate(4096);
      Gate gate = Gate.on(stream);
      target.copyFrom(used, stream);
      used.close();
      gate.open();
      cuda.driver().streams().streamSynchronize(0, stream.handle());
      pool.close();
      assertThat(subject.simulator().liveHostBytes()).isZero();
    }
  }

  @CudaTest(simulatedOnly = true)
  void failedFree_isThrownByWhoeverReleases_andTriedAgain(
      Subject subject, Cuda cuda, ScriptedDriver driver) {
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
    PinnedBuffer last = pool.allocate(4096);
    PinnedBuffer first = pool.allocate(UNIT);
    pool.allocate(UNIT).close();
    first.close();
    pool.allocate(8192).close();
    driver.fail("memFreeHost", CudaStatus.UNKNOWN, 1);
    assertThatThrownBy(pool::freeAllBlocks).hasMessageContaining("UNKNOWN");
    assertThat(pool.totalBytes()).as("the others went all the same").isEqualTo(4096);
    pool.close();
    driver.fail("memFreeHost", CudaStatus.UNKNOWN, 1);
    assertThatThrownBy(last::close).hasMessageContaining("UNKNOWN");
    cuda.allocatePinned(1).close(); // which looks for what could not be released
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
    assertThat(subject.simulator().liveHostBytes()).isZero();
  }

  @CudaTest
  void refusedGrowth_leavesTheLimitAsItWas(Cuda cuda) {
    AtomicBoolean refuses = new AtomicBoolean(true);
    PinnedPoolOptions options =
        PinnedPoolOptions.DEFAULTS
            .withLimit(MemoryLimit.ofBytes(4096))
            .withUpstream(bytes -> {
              if (refuses.get()) {
                throw new CudaException(CudaStatus.OUT_OF_MEMORY, "upstream()", "on purpose");
              }
              return cuda.directPinned().allocate(bytes);
            });
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      assertThatThrownBy(() -> pool.allocate(4096)).isInstanceOf(OutOfPinnedMemoryException.class);
      refuses.set(false);
      pool.allocate(4096).close();
    }
  }

  /** The library does not see that the stream is done before it needs the block. */
  @CudaTest
  void blockWhoseUseIsDone_isFoundBeforeThePoolGrows(
      Cuda cuda, PinnedMemoryPool pool, CudaStream stream) {
    PinnedBuffer used = pool.allocate(4096);
    try (Gate _ = Gate.on(stream)) {
      used.fill((byte) 1, stream);
      used.close();
    }
    cuda.driver().streams().streamSynchronize(0, stream.handle());
    try (PinnedBuffer again = pool.allocate(4096)) {
      assertThat(again.address()).isEqualTo(used.address());
    }
  }

  private static PinnedMemoryPool limited(Cuda cuda, long bytes) {
    return new PinnedMemoryPool(
        cuda, PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(bytes)));
  }
}
