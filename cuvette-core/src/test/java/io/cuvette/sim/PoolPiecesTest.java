package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.PoolProperties;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What streams freed: who may have it, in pieces too, and that all of it comes back. */
class PoolPiecesTest extends SimTestBase {
  private static final int RESERVED = 5;
  private static final int THRESHOLD = 4;
  private static final int USED = 7;
  private static final long STEP = 32 * MIB;

  private final SimulatedDriver large =
      SimulatedDriver.open(SimulatedOptions.DEFAULTS.withMemoryBytes(8 * GIB));
  private final long pool = large.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));

  @AfterEach
  void closeLarge() {
    large.close();
  }

  private long stream(boolean isBlocking) {
    return large.streams().streamCreateWithPriority(0, isBlocking ? 0 : 1, 0);
  }

  private long allocate(long bytes, long stream) {
    return large.ordered().memAllocFromPoolAsync(0, bytes, pool, stream);
  }

  private void free(long address, long stream) {
    large.ordered().memFreeAsync(0, address, stream);
  }

  private long steps() {
    return large.pools().memPoolGetAttribute(pool, RESERVED) / STEP;
  }

  private void keepAll() {
    large.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
  }

  /** The legacy stream and the blocking ones come behind each other; no others do. */
  @Test
  void memoryThatIsFreedInTheOrderOfTheLegacyStream_isUsedAgainWithoutAWait() {
    keepAll();
    long blocking = stream(true);
    long second = stream(true);
    long apart = stream(false);
    long[][] pairs = {
      {blocking, 0, 1},
      {0, blocking, 1},
      {blocking, second, 2},
      {apart, 0, 2},
      {0, apart, 2},
      {apart, blocking, 2},
      {blocking, apart, 2},
      {blocking, blocking, 1},
      {0, 0, 1}
    };
    for (long[] pair : pairs) {
      long first = allocate(STEP, pair[0]);
      large.devices().ctxSynchronize(0);
      CountDownLatch goOn = hold(large, 0, pair[0]);
      free(first, pair[0]);
      long next = allocate(STEP, pair[1]);
      assertThat(steps()).as("freed on %x, for %x", pair[0], pair[1]).isEqualTo(pair[2]);
      goOn.countDown();
      large.devices().ctxSynchronize(0);
      free(next, pair[1]);
      large.devices().ctxSynchronize(0);
      large.pools().memPoolTrimTo(pool, 0);
      assertThat(steps()).isZero();
    }
  }

  /** In the order of the stream, while nothing of it has happened. */
  @Test
  void memoryThatIsFreedSideBySide_comesBackInWholeAndInPieces() {
    keepAll();
    long stream = stream(false);
    for (long taken : new long[] {STEP, STEP / 2, 2 * STEP, STEP + 512, 4 * STEP}) {
      long[] row = new long[4];
      for (int i = 0; i < row.length; i++) {
        row[i] = allocate(STEP, stream);
      }
      large.streams().streamSynchronize(0, stream);
      CountDownLatch goOn = hold(large, 0, stream);
      for (int each : new int[] {2, 0, 3, 1}) {
        free(row[each], stream);
      }
      long again = allocate(taken, stream);
      long other = allocate(512, stream);
      assertThat(steps()).as("%d bytes", taken).isBetween(4L, 5L);
      goOn.countDown();
      large.streams().streamSynchronize(0, stream);
      free(other, stream);
      free(again, stream);
      large.streams().streamSynchronize(0, stream);
      assertThat(large.pools().memPoolGetAttribute(pool, USED)).isZero();
      long whole = allocate(steps() * STEP, stream);
      assertThat(steps()).as("all of it is free, in one piece").isBetween(4L, 5L);
      free(whole, stream);
      large.streams().streamSynchronize(0, stream);
      large.pools().memPoolTrimTo(pool, 0);
      assertThat(steps()).isZero();
    }
  }

  /** Whether the host has noticed or not. */
  @Test
  void poolThatIsDestroyed_givesBackWhatItsStreamsHaveFreed() throws InterruptedException {
    long free = large.devices().memGetInfo(0).freeBytes();
    keepAll();
    long stream = stream(false);
    long first = allocate(STEP, stream);
    CountDownLatch reached = new CountDownLatch(1);
    free(first, stream);
    large.streams().launchHostFunc(0, stream, reached::countDown);
    reached.await();
    assertThat(steps()).isEqualTo(1);
    large.pools().memPoolDestroy(pool);
    assertThat(large.devices().memGetInfo(0).freeBytes()).isEqualTo(free);
  }

  @Test
  void memoryOfAHostPool_isCopiedByADevice_withoutAccessOfItsOwn() {
    long onHost = large.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0));
    long target = large.ordered().memAllocFromPoolAsync(0, 64, onHost, 0);
    long source = large.memory().memAlloc(0, 64);
    large.transfers().memsetD8Async(0, source, (byte) 4, 64, 0);
    large.transfers().memcpyAsync(0, target, source, 64, 0);
    large.transfers().memcpyAsync(0, source, target, 64, 0);
    large.streams().streamSynchronize(0, 0);
    assertFails(
        io.cuvette.driver.CudaStatus.INVALID_VALUE,
        "device 0 has access 0",
        () -> large.transfers().memsetD8Async(0, target, (byte) 4, 64, 0));
  }

  /** Of what a stream freed, it gets the oldest that is large enough, whatever fits better. */
  @Test
  void smallestFreeOfAStream_isUsedFirst() {
    keepAll();
    long stream = stream(false);
    for (boolean largeFirst : new boolean[] {true, false}) {
      long older = allocate(largeFirst ? 2 * STEP : STEP, stream);
      long between = allocate(STEP, stream);
      long newer = allocate(largeFirst ? STEP : 2 * STEP, stream);
      long end = allocate(STEP, stream);
      assertThat(steps()).isEqualTo(5);
      large.streams().streamSynchronize(0, stream);
      CountDownLatch goOn = hold(large, 0, stream);
      free(older, stream);
      free(newer, stream);
      long one = allocate(STEP, stream);
      long two = allocate(2 * STEP, stream);
      assertThat(steps()).as("two is left in one piece").isEqualTo(5);
      goOn.countDown();
      for (long each : new long[] {one, two, between, end}) {
        free(each, stream);
      }
      large.streams().streamSynchronize(0, stream);
      large.pools().memPoolTrimTo(pool, 0);
      assertThat(steps()).isZero();
    }
  }

  /** As on an H200, whatever needs memory, and also if there is too little all the same. */
  @Test
  void shortage_makesPoolsGiveBackAllThatTheyDoNotUse() {
    keepAll();
    long kept = allocate(MIB, 0);
    for (long bytes : new long[] {7 * GIB, 1L << 44, 8 * GIB}) {
      free(allocate(4 * GIB, 0), 0);
      large.devices().ctxSynchronize(0);
      assertThat(steps()).isEqualTo(129);
      if (bytes == 7 * GIB) {
        large.memory().memFree(0, large.memory().memAlloc(0, bytes));
      } else {
        assertThatThrownBy(() -> large.memory().memAlloc(0, bytes)).hasMessageContaining("OUT_OF");
      }
      assertThat(steps()).as("%d bytes", bytes).isEqualTo(1);
    }
    free(allocate(4 * GIB, 0), 0);
    large.devices().ctxSynchronize(0);
    long other = large.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    long block = large.ordered().memAllocFromPoolAsync(0, 7 * GIB, other, 0);
    assertThat(steps()).as("for another pool").isEqualTo(1);
    free(block, 0);
    free(kept, 0);
  }
}
