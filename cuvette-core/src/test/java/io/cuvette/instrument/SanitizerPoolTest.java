package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

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
}
