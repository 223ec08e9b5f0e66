package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.devicepool.CachesOfStream;
import io.cuvette.internal.devicepool.CachingDevicePool;
import io.cuvette.internal.devicepool.DevicePool;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.pool.Chunks;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.StreamCache;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Where a whole chunk is after another stream wanted it, and what a pool lists as open. */
class ChunkMoveTest {
  private static final long BYTES = 1 << 20;
  private static final Duration HELD = Duration.ofMillis(200);

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL));
  private final CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream two = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final MemoryPool owner = new MemoryPool(cuda);
  private final MemoryPoolCore pool =
      MemoryPool.core(owner, cuda, PoolOptions.DEFAULTS.withCrossStreamBytes(0), System::nanoTime);

  private final AtomicInteger growths = new AtomicInteger();

  private BufferBase allocate(long bytes, CudaStream stream) {
    return BufferKind.base(pool.allocate(bytes, stream.core()));
  }

  @AfterEach
  void close() {
    pool.close(this);
    cuda.close();
  }

  @Test
  void wholeChunk_staysWithTheStreamThatTookIt() {
    allocate(BYTES, one).close();
    for (int i = 0; i < 3; i++) {
      allocate(BYTES, two).close();
      assertThat(pool.stats(cuda.device(0).core()).crossStreamReuses()).isEqualTo(1);
    }
    assertThat(pool.heldBytes()).isEqualTo(BYTES);
    assertThat(pool.stats(cuda.device(0).core()).chunks()).as("one of one stream").isOne();
    assertThat(pool.stats(cuda.device(0).core()).usedBlocks()).isZero();
    cuda.close();
    assertThat(pool.heldBytes()).as("of a Cuda that has ended").isZero();
  }

  @Test
  void chunkThatCouldComeIntoNoArena_goesBackToUpstream() {
    long free = DirectMemory.driverFree(cuda.device(0).core());
    allocate(BYTES, one).close();
    StreamCache arena = (StreamCache) CachesOfStream.of(one.state).of(pool);
    Chunks chunks = ((CachingDevicePool) arena.of).chunks;
    int inHand = arena.takeInHand(BYTES, arena.fit(BYTES));
    int chunk = arena.chunk(inHand);
    assertThat(pool.stats(cuda.device(0).core()).usedBytes()).isZero();
    assertThat(chunks.bytes(chunk)).isEqualTo(BYTES);
    arena.forget(inHand);
    ((CachingDevicePool) arena.of).freeMoved(chunk);
    assertThat(pool.heldBytes()).isZero();
    assertThat(chunks.bytes()).isZero();
    assertThat(DirectMemory.driverFree(cuda.device(0).core())).isEqualTo(free);
    pool.assertConsistent();
  }

  /** Its upstream is asked in order of the first stream, and has it back in that order. */
  @Test
  void movedChunk_isFreedAfterTheWorkOfTheStreamThatTookIt() throws InterruptedException {
    MemoryResource upstream = MemoryResource.async();
    MemoryPool moving =
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream).withCrossStreamBytes(0));
    moving.allocate(BYTES, one).close();
    one.synchronize();
    CountDownLatch held = new CountDownLatch(1);
    Buffer taken = moving.allocate(BYTES, two);
    cuda.driver().streams().launchHostFunc(0, two.handle(), () -> Latches.await(held));
    taken.fill((byte) 1, two);
    taken.close();
    assertThat(moving.freeAllBlocks()).isEqualTo(BYTES);
    Thread waiting = Thread.ofPlatform().start(one::synchronize);
    boolean isOver = waiting.join(HELD);
    held.countDown();
    waiting.join();
    assertThat(isOver).as("freed before").isFalse();
  }

  /** Who closes the stream may not have seen it. */
  @Test
  void arenaMadeForAStreamThatIsClosed_isEverybodysFromTheStart() {
    one.close();
    assertThat(CachesOfStream.of(one.state).of(pool).isRetired()).isTrue();
    assertThat(CachesOfStream.of(two.state).of(pool).isRetired()).isFalse();
  }

  @Test
  void streamsAndPoolsThatEnd_leaveNoArenaBehind() {
    DevicePool devicePool = pool.of(cuda.device(0).core());
    allocate(BYTES, one).close();
    allocate(2 * BYTES, two).close();
    assertThat(devicePool.busyCaches(0)).as("those there are").hasSize(2);
    one.close();
    pool.freeAllBlocks(cuda.device(0).core());
    assertThat(devicePool.busyCaches(0)).hasSize(1);
    pool.close(this);
    assertThat(devicePool.busyCaches(0)).isEmpty();
    assertThatThrownBy(() -> CachesOfStream.of(two.state).of(pool))
        .as("the stream has forgotten the pool")
        .isInstanceOf(IllegalStateException.class)
        .hasMessageEndingWith("is closed");
  }

  /** A pool has just grown as something ends: the allocation is refused, and not tried again. */
  private void assertRefused(MemoryPool hooked, Runnable ending, Object ended) {
    hooked.addHook(
        new MemoryHook() {
          @Override
          public void allocPostprocess(Growth growth) {
            growths.incrementAndGet();
            ending.run();
          }
        });
    assertThatThrownBy(() -> hooked.allocate(BYTES, one))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(ended + " is closed");
    assertThat(growths).as("asked once").hasValue(1);
  }

  @Test
  void cudaThatCloses_asThePoolHasJustGrown_hasTheAllocationRefused() {
    MemoryPool hooked = new MemoryPool(cuda);
    assertRefused(hooked, () -> OnThreads.run(1, _ -> cuda.close()), hooked);
  }

  @Test
  void streamThatCloses_asThePoolHasJustGrown_hasTheAllocationRefused() {
    MemoryPool hooked = new MemoryPool(cuda);
    assertRefused(hooked, one::close, one);
    assertThat(hooked.totalBytes()).isZero();
  }

  @Test
  void equalChunksOfOtherStreams_areTakenInTheOrderOfTheStreams() {
    List<BufferBase> first = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      first.add(allocate(BYTES, cuda.device(0).createStream(StreamOptions.NON_BLOCKING)));
    }
    first.forEach(BufferBase::close);
    for (BufferBase expected : first) {
      assertThat(allocate(BYTES, one).address()).isEqualTo(expected.address());
    }
  }

  @Test
  void closedPinnedBuffer_saysWhatItWas_whetherItWasSeenOrNot() {
    for (boolean isSeen : new boolean[] {false, true}) {
      PinnedBuffer buffer = cuda.allocatePinned(1000);
      if (isSeen) {
        buffer.segment().fill((byte) 1);
      }
      buffer.close();
      assertThatThrownBy(buffer::segment)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageMatching("pinned buffer of 1000 bytes at 0x[0-9a-f]+ is closed");
    }
  }

  @Test
  void hook_isAmongTheOpenObjects_untilItEndsOrItsPool() {
    MemoryHook hook = new MemoryHook() {};
    int open = cuda.openObjects().size();
    Registration first = pool.addHook(new HookOfUser(cuda, hook), null);
    assertThat(cuda.openObjects()).hasSize(open + 1);
    first.close();
    assertThat(cuda.openObjects()).hasSize(open);
    Registration second = pool.addHook(new HookOfUser(cuda, hook), null);
    pool.close(this);
    assertThat(cuda.openObjects()).as("neither the hook nor the pool").hasSize(open - 1);
    Registration late = pool.addHook(new HookOfUser(cuda, new MemoryHook() {}), null);
    assertThat(cuda.openObjects()).hasSize(open - 1);
    second.close();
    late.close();
  }

  @Test
  void perThreadStreamOfAnotherThread_isRefused_alsoWhereMemoryIsCached() throws Exception {
    CudaStream mine = cuda.device(0).perThreadStream();
    allocate(512, mine).close();
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread other =
        Thread.ofPlatform()
            .start(() -> {
              try {
                allocate(512, mine).close();
              } catch (RuntimeException e) {
                thrown.set(e);
              }
            });
    other.join();
    assertThat(thrown.get()).isInstanceOf(WrongThreadException.class);
  }

  @Test
  void poolThatCloses_asItHasJustGrown_saysSo() {
    MemoryPool hooked = new MemoryPool(cuda);
    assertRefused(hooked, hooked::close, hooked);
    assertThat(hooked.totalBytes()).isZero();
  }

  /** For threads that are in the middle of something. */
  @Test
  void poolOfACudaThatHasEnded_hasNoChunk_andNothingPending() {
    CachingDevicePool devicePool = (CachingDevicePool) pool.of(cuda.device(0).core());
    BufferBase used = allocate(BYTES, one);
    int chunk = 0;
    assertThat(devicePool.chunks.get(chunk).address()).isEqualTo(used.address());
    Capture capture = Capture.built();
    ((CachedBlock) used.block()).use(capture);
    used.close();
    assertThat(devicePool.pending.blocks()).isOne();
    allocate(BYTES, one).close();
    StreamCache arena = (StreamCache) CachesOfStream.of(one.state).of(pool);
    assertThat(arena.hasFree(BYTES)).isTrue();
    cuda.close();
    assertThat(devicePool.pending.isEmpty()).isTrue();
    assertThat(devicePool.pending.bytes()).isZero();
    assertThat(devicePool.chunks.isOver()).isTrue();
    assertThatThrownBy(() -> arena.take(BYTES, BYTES, one.core()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("its Cuda has ended");
    devicePool.freeMoved(chunk);
    pool.assertConsistent();
    assertThat(pool.heldBytes()).isZero();
  }

  @Test
  void booksThatDoNotAgree_areFound_unlessTheCudaIsAtItsEnd() {
    CachingDevicePool devicePool = (CachingDevicePool) pool.of(cuda.device(0).core());
    assertThat(allocate(BYTES, one).byteSize()).isEqualTo(BYTES);
    devicePool.held.enterArena(1);
    assertThatThrownBy(pool::assertConsistent).hasMessageContaining("expected: to agree");
    devicePool.chunks.end();
    pool.assertConsistent();
  }
}
