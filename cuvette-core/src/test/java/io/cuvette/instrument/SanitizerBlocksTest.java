package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PoolOptions;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Blocks of the library's pools, which the driver does not see. */
@Timeout(60)
class SanitizerBlocksTest extends SanitizedCudaTestBase {
  private static final int BYTES = 1000;

  /** Where a pool keeps what is freed: none of this memory goes back to the driver. */
  private MemoryResource pool(String kind) {
    return switch (kind) {
      case "caching" -> cuda.defaultMemoryPool();
      case "caching twice" ->
          new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(cuda.defaultMemoryPool()));
      case "caching managed" ->
          new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed()));
      case "stream-ordered" -> new AsyncMemoryPool(cuda);
      case "caching stream-ordered" ->
          new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.async()));
      default -> throw new IllegalArgumentException(kind);
    };
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "caching",
        "caching twice",
        "caching managed",
        "stream-ordered",
        "caching stream-ordered"
      })
  void blockThatIsClosed_isFreed_whereverItsMemoryStays(String kind) throws InterruptedException {
    MemoryResource pool = pool(kind);
    Buffer block = pool.allocate(BYTES, stream);
    Buffer beside = pool.allocate(BYTES, stream);
    block.fill((byte) 1, stream);
    NewThread.run(() -> end(block));
    assertSilent();

    fill(block.address(), BYTES, stream);

    SanitizerReport report = assertOnly(Misuse.USE_AFTER_FREE);
    assertThat(report.sites().get(1).call()).startsWith("close(");
    assertThat(report.sites().get(1).getStackTrace())
        .extracting(StackTraceElement::getMethodName)
        .contains("end");
    assertThat(report.sites().get(2).call()).startsWith("allocate(").contains("bytes=" + BYTES);
    beside.close();
  }

  private static void end(Buffer block) {
    block.close();
  }

  /** The driver waits before it frees what the blocks were cut from. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "caching",
        "caching twice",
        "caching managed",
        "stream-ordered",
        "caching stream-ordered"
      })
  void poolThatGivesBackWhatItsStreamStillUses_isRight(String kind) {
    MemoryResource pool = pool(kind);
    try (Buffer block = pool.allocate(BYTES, stream)) {
      block.fill((byte) 1, stream);
    }
    if (pool instanceof MemoryPool caching) {
      assertThat(caching.freeAllBlocks()).isPositive();
    }
    cuda.defaultMemoryPool().freeAllBlocks();
    var pinned = cuda.allocatePinned(BYTES);
    pinned.fill((byte) 1, stream);
    pinned.close();
    cuda.defaultPinnedMemoryPool().freeAllBlocks();

    assertSilent();
  }

  @ParameterizedTest
  @ValueSource(strings = {"caching", "caching twice", "stream-ordered", "caching stream-ordered"})
  void blockThatIsUsedAgain_wasNeverWritten(String kind) {
    MemoryResource pool = pool(kind);
    MemorySegment host = MemorySegment.ofArray(new byte[BYTES]);
    Buffer first = pool.allocate(BYTES, stream);
    try (var _ = stream.use()) {
      first.fill((byte) 1);
      first.copyTo(host);
      first.close();
      try (Buffer again = pool.allocate(BYTES, stream)) {
        assertThat(again.address()).as("the same memory").isEqualTo(first.address());
        again.slice(0, BYTES - 1).fill((byte) 2);
        assertSilent();
        again.copyTo(host);
      }
    }

    assertThat(assertOnly(Misuse.UNINITIALIZED_READ).message())
        .contains("1 bytes of it were never written");
  }

  /** Hooks come and go, whoever watches stays. */
  @Test
  void poolWhoseLastHookIsGone_isWatchedStill() {
    MemoryPool pool = cuda.defaultMemoryPool();
    MemoryHook hook = new MemoryHook() {};
    try (var _ = pool.addHook(hook)) {
      pool.allocate(BYTES, stream).close();
    }
    Buffer block = pool.allocate(BYTES, stream);
    block.close();
    fill(block.address(), BYTES, stream);

    assertOnly(Misuse.USE_AFTER_FREE);
  }

  @Test
  void memoryThatIsCopied_isAsItsSource() {
    MemorySegment host = MemorySegment.ofArray(new byte[100]);
    try (Buffer source = cuda.allocate(100);
        Buffer target = cuda.allocate(100)) {
      source.slice(0, 50).fill((byte) 1);
      target.fill((byte) 2);
      target.slice(10).copyFrom(source.slice(0, 90));
      target.slice(0, 60).copyTo(host.asSlice(0, 60));
      assertSilent();

      target.slice(59, 2).copyTo(host.asSlice(0, 2));
      assertOnly(Misuse.UNINITIALIZED_READ);
    }
  }

  @Test
  void pinnedBlockThatIsClosed_isFreed() {
    PinnedBuffer block = cuda.allocatePinned(BYTES);
    long address = block.address();
    try (Buffer device = cuda.allocate(BYTES)) {
      block.close();
      driver.transfers().memcpyAsync(0, device.address(), address, BYTES, stream.handle());
      assertOnly(Misuse.USE_AFTER_FREE);
      stream.synchronize();
    }
  }

  @Test
  void useBehindTheEndOfABlock_isOutOfBounds_thoughTheChunkGoesOn() {
    try (Buffer block = cuda.allocate(BYTES);
        Buffer _ = cuda.allocate(BYTES)) {
      fill(block.address(), BYTES + 1, stream);
      assertOnly(Misuse.OUT_OF_BOUNDS);
      stream.synchronize();
    }
  }

  @Test
  void copyWithinItself_isNamed() {
    try (Buffer block = cuda.allocate(BYTES)) {
      block.fill((byte) 1);
      for (long distance : new long[] {0, 10}) {
        assertThatExceptionOfType(CudaException.class)
            .as("the simulated device refuses it")
            .isThrownBy(() ->
                driver
                    .transfers()
                    .memcpyAsync(
                        0, block.address() + distance, block.address(), 11, stream.handle()));
        assertOnly(Misuse.OVERLAPPING_COPY);
      }
      driver.transfers().memcpyAsync(0, block.address() + 10, block.address(), 10, stream.handle());
      stream.synchronize();
    }
  }

  @Test
  void blockThatAnotherStreamUses_unknownToThePool_isLentTooEarly() {
    Buffer block = cuda.allocate(BYTES, stream);
    fill(block.address(), BYTES, other);
    block.close();
    assertSilent();

    Buffer again = cuda.allocate(BYTES, stream);
    assertThat(again.address()).isEqualTo(block.address());
    assertThat(assertOnly(Misuse.RACE).message()).contains("is lent before the write");
    other.synchronize();
    again.close();
  }

  @Test
  void blockThatAnotherStreamUses_knownToThePool_comesBackLater() {
    for (int i = 0; i < 20; i++) {
      Buffer block = cuda.allocate(BYTES, stream);
      block.fill((byte) i, stream);
      other.waitFor(stream);
      block.fill((byte) i, other);
      block.close();
      if (i % 5 == 0) {
        other.synchronize();
      }
    }
  }

  @Test
  void useOnAnotherStream_ofMemoryThatIsUsedAgain_isARace_butNotOfNewMemory() {
    try (Buffer block = cuda.allocate(BYTES, stream)) {
      block.fill((byte) 1, other);
      assertSilent();
      other.synchronize();
      block.fill((byte) 1, stream);
    }
    try (Buffer again = cuda.allocate(BYTES, stream)) {
      again.fill((byte) 2, other);
      assertOnly(Misuse.RACE);
      cuda.device(0).synchronize();
    }
  }

  private static void assertNames(SanitizerReport report, Buffer block) {
    assertThat(report.message())
        .contains("(block 0x%x of %d bytes)".formatted(block.address(), block.byteSize()));
    assertThat(report.sites().getLast().call())
        .startsWith("allocate(address=0x%x, bytes=%d".formatted(block.address(), BYTES));
  }

  /** Which others share: where that was allocated tells nothing. */
  @Test
  void mistakeWithABlock_namesIt_andNotItsChunk() {
    MemorySegment heap = MemorySegment.ofArray(new byte[BYTES]);
    cuda.allocate(16 * BYTES, stream).close();
    cuda.allocatePinned(16 * BYTES).close();
    try (Buffer _ = cuda.allocate(BYTES, stream);
        Buffer block = cuda.allocate(BYTES, stream);
        PinnedBuffer _ = cuda.allocatePinned(BYTES);
        PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      block.copyTo(heap);
      assertNames(assertOnly(Misuse.UNINITIALIZED_READ), block);
      pinned.copyTo(heap);
      assertNames(assertOnly(Misuse.UNINITIALIZED_READ), pinned);
      pinned.segment().fill((byte) 1);

      block.copyFrom(pinned, stream);
      pinned.segment().fill((byte) 2);
      stream.synchronize();
      assertNames(assertOnly(Misuse.HOST_RACE), pinned);
      block.copyFrom(pinned, stream);
      pinned.slice(8).copyFrom(heap.asSlice(8).fill((byte) 2)); // the same bytes
      assertNames(assertOnly(Misuse.HOST_RACE), pinned);
      block.slice(8, 8).fill((byte) 2, other);
      assertNames(assertOnly(Misuse.RACE), block);
      cuda.device(0).synchronize();
    }
  }

  @Test
  void raceBehindManyPendingUses_isFound() {
    try (Buffer block = cuda.allocate(20_000, stream)) {
      for (int i = 0; i < 10_000; i++) {
        block.slice(2 * i, 1).fill((byte) i, stream);
      }
      assertSilent();
      block.slice(1, 1).fill((byte) 1, other);
      assertSilent();
      block.slice(0, 1).fill((byte) 1, other);
      assertOnly(Misuse.RACE);
      cuda.device(0).synchronize();
    }
  }

  @Test
  void hostThatReadsOrWritesWhatACopyUses_isNamed() {
    MemorySegment heap = MemorySegment.ofArray(new byte[BYTES]);
    try (Buffer device = cuda.allocate(BYTES, stream);
        PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      device.fill((byte) 1, stream);
      pinned.copyFrom(device, stream);
      pinned.copyTo(heap);
      assertThat(assertOnly(Misuse.HOST_RACE).message()).contains("read").contains("write");

      stream.synchronize();
      pinned.copyTo(heap);
      device.copyFrom(pinned, stream);
      pinned.copyTo(heap);
      assertSilent();

      pinned.copyFrom(heap);
      assertThat(assertOnly(Misuse.HOST_RACE).message()).contains("write").contains("read");
      stream.synchronize();
    }
  }

  @Test
  void memoryChangedBehindManyPendingCopies_isNamed() {
    try (Buffer device = cuda.allocate(20_000, stream);
        PinnedBuffer pinned = cuda.allocatePinned(20_000)) {
      for (int i = 0; i < 10_000; i++) {
        device.slice(2 * i, 1).copyFrom(pinned.slice(2 * i, 1), stream);
      }
      pinned.segment().set(ValueLayout.JAVA_BYTE, 0, (byte) 77);
      stream.synchronize();
    }
    assertOnly(Misuse.HOST_RACE);
  }

  @Test
  void memoryThatOthersMayWrite_isAsGoodAsWritten() {
    byte[] bytes = new byte[BYTES];
    try (Buffer block = cuda.allocate(BYTES, stream)) {
      block.recordUse(other);
      cuda.device(0).synchronize();
      block.copyTo(MemorySegment.ofArray(bytes));
    }
  }

  @Test
  void blocksOfManyThreads_areLentOnce() throws InterruptedException {
    List<Thread> threads =
        Stream.generate(() -> Thread.ofPlatform().unstarted(this::use)).limit(4).toList();
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private void use() {
    CudaStream shared = stream;
    for (int round = 0; round < 100; round++) {
      List<Buffer> blocks = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        Buffer block = cuda.allocate(BYTES, shared);
        block.fill((byte) i, shared);
        blocks.add(block);
      }
      blocks.forEach(Buffer::close);
    }
  }

  @Test
  void blockThatReachesIntoALaterOne_isNamed() {
    var blocks = driver.blockListener();
    try (Buffer whole = cuda.allocate(BYTES, stream)) {
      var end = new BlockListener.Block(2, whole.address() + BYTES / 2, BYTES / 2);
      blocks.blockAllocated(end, 0, stream.handle());
      var all = new BlockListener.Block(2, whole.address(), BYTES);
      blocks.blockAllocated(all, 0, stream.handle());
      assertOnly(Misuse.LENT_TWICE);
      blocks.blockFreed(all);
    }
  }

  @Test
  void blockThatIsLentTwice_isNamed() {
    var blocks = driver.blockListener();
    try (Buffer block = cuda.allocate(BYTES, stream)) {
      var same = new BlockListener.Block(1, block.address() + 1, BYTES);
      blocks.blockAllocated(same, 0, stream.handle());
      String whole = "block 0x%x of %d bytes".formatted(block.address(), BYTES);
      assertThat(assertOnly(Misuse.LENT_TWICE).toString())
          .contains("block 0x%x of %d bytes".formatted(same.address(), BYTES))
          .contains(" is lent while " + whole + " is");
      blocks.blockFreed(same);
      blocks.blockFreed(same);
      assertOnly(Misuse.DOUBLE_FREE);
      blocks.blockAllocated(new BlockListener.Block(1, block.address(), BYTES), 0, stream.handle());
    }
  }

  @Test
  void mistake_isReportedOnce_notForWhatFollowsFromIt() {
    try (Buffer block = cuda.allocate(BYTES, stream)) {
      fill(block.address(), 1, other);
      driver
          .transfers()
          .memcpyDtoHAsync(0, Arena.ofAuto().allocate(BYTES), block.address(), stream.handle());
      assertOnly(Misuse.RACE);
      stream.synchronize();
      other.synchronize();
    }
  }

  /** One that reaches out of the driver's block is none of its parts. */
  @Test
  void blockThatNoBlockOfTheDriverHolds_isNotLookedAt() {
    var blocks = driver.blockListener();
    long memory = driver.memory().memAlloc(0, BYTES);
    var beyond = new BlockListener.Block(1, memory, 2L * BYTES);
    blocks.blockAllocated(beyond, 0, stream.handle());
    blocks.blockAllocated(beyond, 0, stream.handle());
    blocks.blockFreed(beyond);
    blocks.blockFreed(beyond);
    driver.memory().memFree(0, memory);
    assertSilent();
  }
}
