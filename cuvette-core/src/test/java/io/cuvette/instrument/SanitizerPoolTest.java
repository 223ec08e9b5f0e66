package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BlockListener;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

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
}
