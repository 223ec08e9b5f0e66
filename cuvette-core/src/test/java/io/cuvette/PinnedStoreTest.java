package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.pinnedpool.PinnedBlock;
import io.cuvette.internal.pinnedpool.PinnedChunk;
import io.cuvette.internal.pinnedpool.PinnedPoolCore;
import io.cuvette.internal.pinnedpool.PinnedShortage;
import io.cuvette.internal.pinnedpool.PinnedStore;
import io.cuvette.internal.pinnedpool.SizeClasses;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where a chunk is that could not be lent, or that came when all had ended. */
@Timeout(30)
class PinnedStoreTest {
  private static final int BYTES = 4096;
  private static final int CLASS = SizeClasses.classOf(BYTES);

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final Memory memory = cuda.directPinned().allocate(BYTES).memory();
  private final PinnedStore store = new PinnedStore(Long.MAX_VALUE);

  @AfterEach
  void close() {
    cuda.close();
  }

  private PinnedChunk added(PinnedStore to) {
    assertThat(to.held().reserve(BYTES)).isTrue();
    return to.add(memory, CLASS);
  }

  @Test
  void chunkThatIsPutBack_isCached() {
    PinnedChunk chunk = added(store);
    store.assertConsistent();
    assertThat(store.take(CLASS)).isNull();
    store.putBack(chunk);
    store.assertConsistent();
    assertThat(store.take(CLASS)).isSameAs(chunk);
    store.putBack(chunk);
    assertThat(store.remove(CLASS)).isSameAs(chunk);
  }

  @Test
  void takes_areThoseFromTheStoreAndThoseFromUpstream() {
    store.putBack(added(store));
    assertThat(store.takes()).isEqualTo(1);
    PinnedChunk chunk = store.take(CLASS);
    assertThat(store.takes()).isEqualTo(2);
    assertThat(store.take(CLASS)).isNull();
    assertThat(store.takes()).isEqualTo(2);
    store.putBack(chunk);
  }

  @Test
  void whatIsOnItsWayToUpstream_isFreeAndPending() {
    store.putBack(added(store));
    PinnedChunk chunk = store.remove(CLASS);
    store.assertConsistent();
    PinnedPoolStats meanwhile = store.stats(new PendingFrees<>(_ -> {}));
    assertThat(meanwhile.freeBytes()).isEqualTo(BYTES);
    assertThat(meanwhile.pendingBytes()).isEqualTo(BYTES);
    assertThat(meanwhile.heldBytes()).isEqualTo(BYTES);
    store.giveUp(chunk);
    assertThat(store.stats(new PendingFrees<>(_ -> {})).heldBytes()).isZero();
  }

  @Test
  void chunkThatComesTooLate_goesBackToUpstream() {
    store.end(new Failures());
    assertThat(added(store)).isNull();
    assertThat(memory.block().ended()).isTrue();
    assertThat(store.stats(new PendingFrees<>(_ -> {})).growths()).isZero();
  }

  /** For the parts of a transfer that go beside the first. */
  @Test
  void allocatorThatIsNoPool_isTriedAsWell() {
    PinnedAllocator plain = cuda.directPinned();
    PinnedChunks chunks = new PinnedChunks(plain, () -> plain);
    Memory tried = chunks.tryAllocate(BYTES, cuda.currentStream().core());
    assertThat(tried).isNotNull();
    assertThat(tried.byteSize()).isEqualTo(BYTES);
    tried.close();
  }

  @Test
  void bufferInUse_isNotForgotten() {
    PinnedChunk chunk = added(store);
    assertThat(store.hasForgotten()).isFalse();
    PinnedBlock block = (PinnedBlock) ((BufferBase) new PinnedMemoryPool(cuda).allocate(1)).block();
    chunk.lentTo = block;
    assertThat(store.hasForgotten()).isFalse();
    block.clear(); // as the collector does
    assertThat(store.hasForgotten()).isTrue();
  }

  @Test
  void chunkThatIsPutBackTooLate_isNotLentAgain() {
    PinnedChunk chunk = added(store);
    store.end(new Failures());
    store.putBack(chunk);
    assertThat(store.take(CLASS)).isNull();
    assertThat(store.held().held()).isZero();
  }

  /** It goes with the Cuda. */
  @Test
  void chunkThatWasCached_isNotLentAfterTheEnd() {
    store.putBack(added(store));
    store.end(new Failures());
    assertThat(store.take(CLASS)).isNull();
    assertThat(store.remove(CLASS)).isNull();
    assertThat(store.stats(new PendingFrees<>(_ -> {})).freeBytes()).isZero();
  }

  @Test
  void chunkThatCannotBeAdded_isForgotten() {
    memory.close();
    assertThatThrownBy(() -> added(store)).isInstanceOf(IllegalStateException.class);
    store.held().unreserve(BYTES);
    store.assertConsistent();
    assertThat(store.stats(new PendingFrees<>(_ -> {})).growths()).isZero();
  }

  /** Who waits goes on with that as long as others take what there is. */
  @Test
  void memoryThatIsFree_orOnItsWayToUpstream_mayDoForAShortage() {
    PinnedAllocator upstream = cuda.directPinned();
    PinnedPoolCore pool =
        new PinnedPoolCore(
            this,
            cuda.engine().streams(),
            new PinnedChunks(upstream, () -> upstream),
            MemoryLimit.none(),
            BufferKind.PINNED);
    OpenStream stream = cuda.currentStream().core();
    PinnedShortage shortage = new PinnedShortage(pool, store, BYTES, CLASS, stream, new Refusals());
    assertThat(shortage.mayHave()).isFalse();
    assertThat(shortage.hasForgotten()).isFalse();
    assertThat(shortage.takes()).isZero();

    assertThat(store.held().reserve(BYTES)).isTrue();
    assertThat(shortage.takes()).isEqualTo(1);
    store.held().leaveForGood(BYTES);
    assertThat(shortage.mayHave()).isTrue();
    store.held().freed(BYTES);
    assertThat(shortage.mayHave()).isFalse();

    ((PinnedBuffer) pool.allocate(BYTES, stream)).close();
    assertThat(shortage.mayHave()).isTrue();
    assertThat(cuda.engine().streams().relief().releaseCached(null)).isEqualTo(BYTES);
    assertThat(shortage.mayHave()).isFalse();
  }

  @Test
  void booksThatDoNotAgree_areFound() {
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
    PinnedBuffer buffer = pool.allocate(BYTES);
    PinnedChunk chunk = ((PinnedBlock) ((BufferBase) buffer).block()).chunk;
    chunk.isInStore = false;
    assertThatThrownBy(pool::assertConsistent)
        .isInstanceOf(AssertionError.class)
        .hasMessage("used and cached: %d bytes (expected: 0)", BYTES);
    chunk.isInStore = true;
    buffer.close();
    PinnedBuffer other = pool.allocate(2 * BYTES);
    other.close();
    pool.assertConsistent();
    chunk.next = ((PinnedBlock) ((BufferBase) other).block()).chunk;
    assertThatThrownBy(pool::assertConsistent).isInstanceOf(AssertionError.class);
    chunk.next = null;
    pool.assertConsistent();
  }

  /** One is missing in the list, and is not said to be in the store. */
  @Test
  void cachedBytesThatAreNotListed_areFound() {
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
    PinnedBuffer first = pool.allocate(BYTES);
    PinnedBuffer last = pool.allocate(BYTES);
    PinnedChunk lost = ((PinnedBlock) ((BufferBase) first).block()).chunk;
    PinnedChunk listed = ((PinnedBlock) ((BufferBase) last).block()).chunk;
    first.close();
    last.close();
    assertThat(listed.next).isSameAs(lost);
    listed.next = null;
    lost.isInStore = false;
    assertThatThrownBy(pool::assertConsistent)
        .isInstanceOf(AssertionError.class)
        .hasMessage("cached: %d bytes (expected: %d)", 2 * BYTES, BYTES);
    listed.next = lost;
    lost.isInStore = true;
    pool.assertConsistent();
  }

  @Test
  void bytesThatTheLimitDoesNotCount_areFound() {
    store.putBack(added(store));
    store.assertConsistent();
    store.held().leaveArena(512);
    assertThatThrownBy(store::assertConsistent).isInstanceOf(AssertionError.class);
    store.held().enterArena(512);
    store.assertConsistent();
  }

  /** Nobody has looked since the work was done. */
  @Test
  void whoeverIsShort_getsWhatPoolsHaveOfWorkThatIsDone() {
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    PinnedBuffer used = pool.allocate(BYTES);
    used.fill((byte) 1, stream);
    used.close();
    cuda.driver().streams().streamSynchronize(0, stream.handle());
    assertThat(cuda.engine().streams().relief().releaseCached(null)).isEqualTo(BYTES);
    assertThat(pool.totalBytes()).isZero();
  }

  @Test
  void closedPool_refusesAlsoWhatItTriesAlone_howeverLittleItMayHold() {
    for (long limit : new long[] {0, BYTES, Long.MAX_VALUE}) {
      PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
      pool.setLimit(MemoryLimit.ofBytes(limit));
      pool.close();
      for (long bytes : new long[] {1, BYTES, 1L << 50}) {
        assertThatThrownBy(() -> pool.tryAllocate(bytes))
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("PinnedMemoryPool is closed");
      }
    }
  }

  @Test
  void blocks_areCountedWhetherTheyAreUsedOrFree_andThePeakStays() {
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
    PinnedBuffer one = pool.allocate(BYTES);
    PinnedBuffer two = pool.allocate(BYTES);
    assertThat(pool.stats().usedBlocks()).isEqualTo(2);
    assertThat(pool.stats().freeBlocks()).isZero();
    one.close();
    assertThat(pool.stats().usedBlocks()).isEqualTo(1);
    assertThat(pool.stats().freeBlocks()).isEqualTo(1);
    two.close();
    assertThat(pool.stats().usedBlocks()).isZero();
    assertThat(pool.stats().freeBlocks()).isEqualTo(2);
    pool.allocate(BYTES).close();
    assertThat(pool.stats().peakUsedBytes()).isEqualTo(2 * BYTES);
    assertThat(pool.freeAllBlocks()).isEqualTo(2 * BYTES);
    assertThat(pool.stats().freeBlocks()).isZero();
    assertThat(pool.stats().peakUsedBytes()).isEqualTo(2 * BYTES);
  }

  @Test
  void limit_isTheOneOfTheOptions_untilAnotherIsSet() {
    MemoryLimit limit = MemoryLimit.ofBytes(2 * BYTES);
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda, PinnedPoolOptions.DEFAULTS.withLimit(limit));
    assertThat(pool.limit()).isEqualTo(limit);
    assertThat(pool.stats().limitBytes()).isEqualTo(2 * BYTES);
    pool.setLimit(MemoryLimit.ofBytes(BYTES));
    assertThat(pool.limit()).isEqualTo(MemoryLimit.ofBytes(BYTES));
    assertThat(pool.stats().limitBytes()).isEqualTo(BYTES);
  }
}
