package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BlockListener;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What comes before what without work of its own: records, blocks that are lent, batches. */
class SanitizerEventOrderTest extends SanitizerTestBase {
  private final long one = stream();
  private final long other = stream();
  private final long third = stream();
  private final long blocking = blockingStream();
  private final long block = memory();
  private final long second = memory();

  private void recordAndAwait(long recording, long waiting) {
    long event = event();
    driver.events().eventRecord(0, event, recording);
    driver.streams().streamWaitEvent(0, waiting, event);
  }

  /** The record itself is ordered by the default stream, as work would be. */
  @Test
  void recordOfABlockingStream_comesBehindTheDefaultStream() {
    write(block, 0);
    recordAndAwait(blocking, one);
    write(block, one);
    assertSilent();
  }

  @Test
  void recordOfTheDefaultStream_comesBehindBlockingStreams_andNoOthers() {
    write(block, blocking);
    write(second, other);
    recordAndAwait(0, one);
    write(block, one);
    assertSilent();
    write(second, one);
    assertOnly(Misuse.RACE);
  }

  @Test
  void recordOfAnotherStream_comesBehindNothingElse() {
    write(block, 0);
    recordAndAwait(other, one);
    write(block, one);
    assertOnly(Misuse.RACE);
  }

  @Test
  void eventThatIsRecordedAnew_isWhereItWasRecordedLast_andNoLongerElsewhere() {
    long event = event();
    write(block, one);
    driver.events().eventRecord(0, event, one);
    driver.events().eventRecord(0, event, other);
    driver.streams().streamWaitEvent(0, third, event);
    driver.events().eventSynchronize(0, event);
    write(block, third);
    assertOnly(Misuse.RACE);
  }

  @Test
  void timeBetweenTwoEvents_endsWorkBeforeEither() {
    long start = event();
    long end = event();
    write(block, one);
    driver.events().eventRecord(0, start, one);
    write(second, other);
    driver.events().eventRecord(0, end, other);
    driver.events().eventElapsedTime(0, start, end);
    write(block, third);
    write(second, third);
    assertSilent();
  }

  /** Each device has a default stream, which waits for the blocking streams of that device. */
  @Test
  void defaultStreamOfASecondDevice_isInOrderWithItsBlockingStreams_andNoOthers() {
    long blockingThere = driver.streams().streamCreateWithPriority(1, 0, 0);
    long there = driver.memory().memAlloc(1, 1024);
    for (long stream : new long[] {blockingThere, 0, blockingThere, 0}) {
      driver.transfers().memsetD8Async(1, there, (byte) 1, 1024, stream);
    }
    long event = driver.events().eventCreate(1, 2);
    driver.events().eventRecord(1, event, 0);
    driver.events().eventSynchronize(1, event);
    write(there, one);
    assertSilent();
    driver.devices().ctxSynchronize(0);
    driver.transfers().memsetD8Async(1, there, (byte) 1, 1024, 0);
    write(there, 0);
    assertOnly(Misuse.RACE);
  }

  private void lend(long address, long stream) {
    BlockListener listener = driver.blockListener();
    listener.blockAllocated(new BlockListener.Block(1, address, 512), 0, stream);
    listener.blockFreed(new BlockListener.Block(1, address, 512));
  }

  @Test
  void hostFunctionOfABlockingStream_comesBehindTheDefaultStream() {
    write(block, 0);
    driver.streams().launchHostFunc(0, blocking, () -> write(block, one));
    assertSilent();
    driver.streams().launchHostFunc(0, other, () -> write(block, third));
    assertOnly(Misuse.RACE);
  }

  @Test
  void waitForAValueInABlockingStream_comesBehindTheDefaultStream() {
    write(block, 0);
    driver.streams().streamWaitValue32(0, blocking, second, 0, 0);
    driver.streams().streamSynchronize(0, blocking);
    write(block, one);
    assertSilent();
  }

  /** Nothing is queued by it, so that who waits for the stream waits for no other one. */
  @Test
  void blockThatIsLentOrComesBack_isNoWorkOfItsStream() {
    write(block, 0);
    lend(second, blocking);
    driver.blockAllocated(second, 64);
    driver.blockFreed(0, second, blocking);
    driver.streams().streamSynchronize(0, blocking);
    write(block, one);
    assertOnly(Misuse.RACE);
  }

  @Test
  void blockThatIsLent_isBehindWhatTheDefaultStreamIsBehind() {
    write(block, blocking);
    lend(block, 0);
    write(second, 0);
    lend(second, blocking);
    assertSilent();
    lend(second, one);
    assertOnly(Misuse.RACE);
  }

  @Test
  void blockThatIsLentToAStreamThatIsGone_isAUseOfThat() {
    driver.streams().streamDestroy(0, other);
    lend(block, other);
    SanitizerReport report = assertOnly(Misuse.DESTROYED_HANDLE);
    assertThat(report.message()).startsWith("allocate(address=");
  }

  private void batch(long stream, long... targets) {
    long[] sources = new long[targets.length];
    long[] bytes = new long[targets.length];
    for (int i = 0; i < targets.length; i++) {
      sources[i] = memory();
      bytes[i] = 1024;
      write(sources[i], stream);
    }
    driver.transfers().memcpyBatchAsync(0, targets, sources, bytes, stream);
  }

  @Test
  void eachMistakeOfABatch_isToldOnce() {
    write(second, other);
    batch(one, block, second, memory());
    assertOnly(Misuse.RACE);
  }

  /** What is captured runs at its launch, and is checked then. */
  @Test
  void capturedBatch_isNoRaceWithWorkThatRuns() {
    write(second, other);
    driver.captures().streamBeginCapture(0, one, 2);
    batch(one, block, second, block);
    driver.captures().streamEndCapture(0, one);
    assertSilent();
  }

  @Test
  void callThatIsWrong_isToldWithItsOwnStack() {
    long event = event();
    driver.events().eventDestroy(0, event);
    driver.events().eventQuery(0, event);
    SanitizerReport report = assertOnly(Misuse.DESTROYED_HANDLE);
    assertThat(report.sites().getFirst().getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals("callThatIsWrong_isToldWithItsOwnStack"));
  }

  @Test
  void leaksThatOneThreadLookedFor_keepNoOtherFromCalling() throws InterruptedException {
    assertThat(driver.leaks()).isNotEmpty();
    Thread next = Thread.ofVirtual().start(this::memory);
    assertThat(next.join(Duration.ofSeconds(60))).isTrue();
  }
}
