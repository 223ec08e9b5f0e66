package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Streams that wait for words which others write: that is an order, as with events. */
class SanitizerWordWaitTest extends SanitizerTestBase {
  private final long first = stream();
  private final long second = stream();
  private final long third = stream();
  private final long block = memory();
  private final long words = memory();

  private void set(long word, long stream) {
    driver.transfers().memsetD32Async(0, word, 1, 1, stream);
  }

  private void waitFor(long word, long stream) {
    driver.streams().streamWaitValue32(0, stream, word, 1, 1);
  }

  @Test
  void workBehindAWait_comesAfterThatBeforeTheWrite() {
    write(block, first);
    set(words, first);
    waitFor(words, second);
    read(block, second);
    assertSilent();

    read(block, third);
    assertOnly(Misuse.RACE);
  }

  @Test
  void waitsOneAfterTheOther_passItOn() {
    write(block, first);
    set(words, first);
    waitFor(words, second);
    set(words + 4, second);
    waitFor(words + 4, third);
    write(block, third);
    assertSilent();
  }

  @Test
  void neighbourOfTheWord_andMemoryThatNobodyKnows_areNoOrder() {
    write(block, first);
    set(words + 4, first);
    waitFor(words, second);
    waitFor(0x7000, second);
    read(block, second);
    assertOnly(Misuse.RACE);
  }

  @Test
  void copyAndKernel_writeTheWordToo_butWhoReadsItDoesNot() {
    driver.transfers().memcpyHtoDAsync(0, words, HOST.asSlice(0, 8), third);
    driver.streams().streamSynchronize(0, third);
    write(block, first);
    driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, 8), words, first);
    waitFor(words, third);
    read(block, third);
    assertOnly(Misuse.RACE);
    reports.clear();

    launch(words + 4, first);
    waitFor(words + 4, second);
    read(block, second);
    assertSilent();
  }

  /** Whatever was queued in blocking streams before is before what the default stream writes. */
  @Test
  void wordOfTheDefaultStream_isBehindTheBlockingStreams() {
    long blocking = blockingStream();
    write(block, blocking);
    set(words, 0);
    waitFor(words, second);
    read(block, second);
    assertSilent();
  }

  /** It waits in launches of the graph alone. */
  @Test
  void waitThatIsCaptured_isNoOrder() {
    write(block, first);
    set(words, first);
    driver.captures().streamBeginCapture(0, second, 2);
    waitFor(words, second);
    long graph = driver.captures().streamEndCapture(0, second);
    assertThat(reports).isEmpty();
    read(block, second);
    assertOnly(Misuse.RACE);
    driver.graphs().graphDestroy(graph);
  }

  /** Nothing is queued there that would come behind the default stream's work. */
  @Test
  void functionAndRecordThatAreCaptured_areNoOrder() {
    long blocking = blockingStream();
    long event = event();
    write(block, 0);
    driver.captures().streamBeginCapture(0, blocking, 2);
    driver.streams().launchHostFunc(0, blocking, () -> {});
    driver.events().eventRecord(0, event, blocking);
    driver.captures().streamEndCapture(0, blocking);
    driver.streams().streamSynchronize(0, blocking);
    read(block, second);
    assertOnly(Misuse.RACE);
  }
}
