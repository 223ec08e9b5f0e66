package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BlockListener;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SanitizerPoolTest extends SanitizerTestBase {
  private final long chunk = memory();
  private final long first = stream();
  private final long second = stream();

  private void fill(long address, long bytes, long stream) {
    driver.transfers().memsetD8Async(0, address, (byte) 1, bytes, stream);
  }

  @Test
  void partsUsedInOrder_areSilent() {
    driver.blockAllocated(chunk, 512);
    driver.blockAllocated(chunk + 512, 512);
    fill(chunk, 512, first);
    fill(chunk + 512, 512, second);
    driver.blockFreed(0, chunk, first);
    driver.blockAllocated(chunk, 256);
    fill(chunk, 256, first);
    driver.blockFreed(0, chunk, first);
    driver.blockFreed(0, chunk + 512, second);
    driver.devices().ctxSynchronize(0);
    driver.memory().memFree(0, chunk);

    assertSilent();
  }

  /** Whoever reports uses may do so of memory that the driver never gave. */
  @Test
  void useThatIsReported_isNone_ofUnknownMemory_inACapture_orOfADestroyedStream() {
    BlockListener listener = driver.blockListener();
    listener.usedElsewhere(0x5000, 64, 0, first);
    driver.captures().streamBeginCapture(0, first, 2);
    listener.usedElsewhere(chunk, 512, 0, first);
    fill(chunk, 512, second);
    assertSilent();
    long gone = stream();
    driver.streams().streamDestroy(0, gone);
    listener.usedElsewhere(chunk + 512, 512, 0, gone);
    assertOnly(Misuse.DESTROYED_HANDLE);
    reports.clear();
    fill(chunk + 512, 512, second);
    assertSilent();
  }

  @Test
  void freedPart_isUseAfterFree_thoughTheChunkIsLive() {
    driver.blockAllocated(chunk, 512);
    driver.blockFreed(0, chunk, first);

    fill(chunk, 512, first);

    assertThat(assertOnly(Misuse.USE_AFTER_FREE).sites())
        .extracting(Site::call)
        .anySatisfy(call -> assertThat(call).startsWith("blockFreed("));
  }

  @Test
  void useBeyondAPart_isOutOfBounds_thoughTheChunkGoesOn() {
    driver.blockAllocated(chunk, 512);

    fill(chunk, 513, first);

    assertOnly(Misuse.OUT_OF_BOUNDS);
  }

  @Test
  void partFreedTwice_isADoubleFree() {
    driver.blockAllocated(chunk, 512);
    driver.blockFreed(0, chunk, first);
    driver.blockFreed(0, chunk, first);

    assertOnly(Misuse.DOUBLE_FREE);
  }

  @Test
  void partFreedOnAStream_whileAnotherUsesIt_isReported() {
    driver.blockAllocated(chunk, 512);
    fill(chunk, 512, second);
    driver.blockFreed(0, chunk, first);

    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void partHandedToAnotherStreamTooEarly_isARace() {
    driver.blockAllocated(chunk, 512);
    fill(chunk, 512, first);
    driver.blockFreed(0, chunk, first);
    driver.blockAllocated(chunk, 512);
    fill(chunk, 512, second);

    assertOnly(Misuse.RACE);
  }

  @Test
  void partOutsideAnyBlock_isReported() {
    driver.blockAllocated(chunk + 1000, 512);
    assertOnly(Misuse.OUT_OF_BOUNDS);
    reports.clear();

    driver.blockAllocated(0x5000, 512);
    assertOnly(Misuse.UNKNOWN_ADDRESS);
  }

  /** One pool reports, and the one that it has its memory from does not. */
  @Test
  void partOfAPartThatNobodyReported_isNone() {
    for (int depth = 2; depth <= 3; depth++) {
      BlockListener.Block inner = new BlockListener.Block(depth, chunk, 64);
      driver.blockListener().blockAllocated(inner);
      driver.blockListener().blockAllocated(inner, 0, first);
      fill(chunk, 512, first);
      driver.blockListener().blockFreed(inner);
      driver.blockListener().blockFreed(inner);
    }
    assertSilent();
  }

  @Test
  void partFreedLongAgo_isNotTheOneThatIsThereNow() {
    driver.blockAllocated(chunk + 512, 512);
    driver.blockFreed(0, chunk + 512, first);
    driver.blockAllocated(chunk, 1024);
    driver.blockFreed(0, chunk + 512, first);

    assertThat(assertOnly(Misuse.INVALID_FREE).message()).contains("512 bytes into block");
  }

  private MemorySegment pinned() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 64, 0);
    pinned.fill((byte) 7);
    return pinned;
  }

  private void lend(MemorySegment memory) {
    driver
        .blockListener()
        .blockAllocated(new BlockListener.Block(1, memory.address(), memory.byteSize()));
  }

  private static void assertUntouched(MemorySegment memory) {
    assertThat(memory.toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
  }

  @Test
  void memoryThatIsLentToTheHost_isMarkedUnwritten_unlessAnybodyMayUseIt() {
    MemorySegment unused = pinned();
    lend(unused);
    assertThat(unused.toArray(ValueLayout.JAVA_BYTE)).doesNotContain(7);
    assertSilent();

    MemorySegment twice = pinned();
    lend(twice);
    twice.fill((byte) 7);
    lend(twice);
    assertOnly(Misuse.LENT_TWICE);
    assertUntouched(twice);
    reports.clear();

    MemorySegment used = pinned();
    fill(used.address(), 64, first);
    lend(used);
    assertOnly(Misuse.RACE);
    assertUntouched(used);
    reports.clear();

    MemorySegment inOrder = pinned();
    driver
        .blockListener()
        .blockAllocated(new BlockListener.Block(1, inOrder.address(), 64), 0, first);
    assertSilent();
    assertUntouched(inOrder);
  }

  @Test
  void memoryThatIsLentInACapture_isUsedWhenThatIsLaunched() {
    MemorySegment used = pinned();
    fill(used.address(), 64, first);
    BlockListener.Block block = new BlockListener.Block(1, used.address(), 64);
    driver.captures().streamBeginCapture(0, second, 0);
    driver.blockListener().blockAllocated(block, 0, second);
    assertSilent();
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, second));
    driver.blockListener().blockFreed(block);
    driver.blockListener().blockAllocated(block, 0, second);
    assertOnly(Misuse.RACE);
  }

  private BlockListener.Block part(long from, long end) {
    return new BlockListener.Block(1, chunk + from, end - from);
  }

  /** Wherever the one begins and ends beside the other. */
  @Test
  void partsThatShareAByte_areLentTwice() {
    int[] places = {0, 128, 256, 384, 512, 640};
    BlockListener listener = driver.blockListener();
    for (int from : places) {
      for (int end : places) {
        if (from < end) {
          listener.blockAllocated(part(256, 512));
          listener.blockAllocated(part(from, end));
          boolean shared = from < 512 && end > 256;
          assertThat(reports)
              .as("%d to %d", from, end)
              .extracting(SanitizerReport::misuse)
              .isEqualTo(shared ? List.of(Misuse.LENT_TWICE) : List.of());
          listener.blockFreed(part(from, end));
          listener.blockFreed(part(256, 512));
          reports.clear();
        }
      }
    }
  }

  /** Of no byte nothing is missing, and of one it may be. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void fewUnwrittenBytes_areReported_andNone(int bytes) {
    driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, bytes), memory(), first);

    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .isEqualTo(bytes == 0 ? List.of() : List.of(Misuse.UNINITIALIZED_READ));
  }

  @Test
  void partOfWrittenMemory_isUnwrittenForItsNewOwner() {
    fill(chunk, 1024, first);
    driver.blockAllocated(chunk, 512);
    driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, 512), chunk, first);

    assertThat(assertOnly(Misuse.UNINITIALIZED_READ).message()).contains("512 bytes of it");
  }

  /** The default stream and those that block wait for each other, whatever is done there. */
  @Test
  void partFreed_inAStreamThatWaitsForItsUser_isSilent() {
    long[] streams = {first, blockingStream(), 0};
    for (long user : streams) {
      for (long later : streams) {
        long memory = memory();
        driver.blockAllocated(memory, 512);
        fill(memory, 512, user);
        driver.blockFreed(0, memory, later);
        boolean isBehind = user == later || (user != first && later != first);
        assertThat(reports)
            .as("0x%x, then 0x%x", user, later)
            .extracting(SanitizerReport::misuse)
            .isEqualTo(isBehind ? List.of() : List.of(Misuse.FREE_WHILE_IN_USE));
        reports.clear();
        driver.devices().ctxSynchronize(0);
      }
    }
  }

  @Test
  void hostMemoryOfAPartThatCameBack_isUsedTooLate_byCopiesInBothDirections() {
    MemorySegment pinned = pinned();
    lend(pinned);
    driver
        .blockListener()
        .blockFreed(new BlockListener.Block(1, pinned.address(), pinned.byteSize()));
    fill(chunk, 64, first);
    assertSilent();
    driver.transfers().memcpyHtoDAsync(0, chunk, pinned, first);
    assertOnly(Misuse.USE_AFTER_FREE);
    reports.clear();
    driver.transfers().memcpyDtoHAsync(0, pinned, chunk, first);
    assertOnly(Misuse.USE_AFTER_FREE);
  }

  @Test
  void memoryThatAnotherStreamUses_isInUse_unlessThatIsCaptured() {
    long captured = memory();
    driver.captures().streamBeginCapture(0, second, 0);
    driver.blockListener().usedElsewhere(captured, 512, 0, second);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, second));
    driver.memory().memFree(0, captured);
    driver.blockListener().usedElsewhere(chunk, 512, 0, second);
    fill(chunk, 512, first);
    driver.streams().streamSynchronize(0, first);
    assertSilent();
    driver.memory().memFree(0, chunk);

    assertThat(assertOnly(Misuse.FREE_WHILE_IN_USE).sites().get(1).call()).startsWith("recordUse(");
  }

  @Test
  void poolOfAnUnknownDepth_lendsNothing() {
    driver.blockListener().blockAllocated(new BlockListener.Block(3, chunk, 64));
    driver.blockListener().blockAllocated(new BlockListener.Block(2, 0x5000, 64));
    driver.blockListener().blockFreed(new BlockListener.Block(3, chunk, 64));
    fill(chunk + 512, 512, first);
    assertSilent();
  }
}
