package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.PoolProperties;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory of a pool that is freed on one stream, and what another or the host knows of that. */
class PoolsOfTwoDevicesTest extends SimTestBase {
  private static final PoolProperties ON_FIRST = new PoolProperties(1, 0, 1, 0, 0);
  private static final long BYTES = 4 * MIB;
  private static final int OPPORTUNISTIC = 2;
  private static final int INTERNAL = 3;
  private static final int RESERVED = 5;

  private record On(int device, long stream) {}

  private long free(int device) {
    return driver.devices().memGetInfo(device).freeBytes();
  }

  private long allocate(On on, long pool) {
    return driver.ordered().memAllocFromPoolAsync(on.device, BYTES, pool, on.stream);
  }

  private void free(On on, long address) {
    driver.ordered().memFreeAsync(on.device, address, on.stream);
  }

  private void synchronize(On on) {
    driver.streams().streamSynchronize(on.device, on.stream);
  }

  /** The default stream of each device, and one of each device that is ordered by it or not. */
  private List<On> streams() {
    return List.of(
        new On(0, 0),
        new On(0, driver.streams().streamCreateWithPriority(0, 0, 0)),
        new On(0, stream(0)),
        new On(1, 0),
        new On(1, driver.streams().streamCreateWithPriority(1, 0, 0)),
        new On(1, stream(1)));
  }

  private static boolean areOrdered(int one, int other) {
    boolean ofOneDevice = one / 3 == other / 3;
    return one == other || (ofOneDevice && one % 3 + other % 3 == 1);
  }

  @Test
  void memoryThatIsFreed_isUsedAtOnce_whereTheOrderOfStreamsSaysSo() {
    List<On> streams = streams();
    for (int freed = 0; freed < 6; freed++) {
      for (int next = 0; next < 6; next++) {
        long pool = driver.pools().memPoolCreate(ON_FIRST);
        driver.pools().memPoolSetAttribute(pool, OPPORTUNISTIC, 0);
        driver.pools().memPoolSetAttribute(pool, INTERNAL, 0);
        free(streams.get(freed), allocate(streams.get(freed), pool));
        long address = allocate(streams.get(next), pool);
        assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED))
            .as("freed on %d, allocated on %d", freed, next)
            .isEqualTo(areOrdered(freed, next) ? BYTES : 2 * BYTES);
        free(streams.get(next), address);
        driver.pools().memPoolDestroy(pool);
        driver.devices().ctxSynchronize(0);
        driver.devices().ctxSynchronize(1);
        assertThat(free(0)).isEqualTo(64 * MIB);
      }
    }
  }

  /** Whether the other is done, which the host does not know, or not. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void hostThatWaitedForOneDevice_knowsNothingOfTheFreesOfAnother(boolean isDone)
      throws InterruptedException {
    for (int device = 0; device < 2; device++) {
      On on = new On(device, stream(device));
      long pool = driver.pools().deviceGetDefaultMemPool(device);
      long address = allocate(on, pool);
      CountDownLatch goOn = hold(device, on.stream);
      free(on, address);
      if (isDone) {
        goOn.countDown();
        CountDownLatch done = new CountDownLatch(1);
        driver.streams().launchHostFunc(device, on.stream, done::countDown);
        assertThat(done.await(40, TimeUnit.SECONDS)).isTrue();
      }
      driver.devices().ctxSynchronize(1 - device);
      assertThat(free(device)).isEqualTo(64 * MIB - BYTES);
      assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED)).isEqualTo(BYTES);
      goOn.countDown();
      synchronize(on);
      assertThat(free(device)).isEqualTo(64 * MIB);
    }
  }

  /** An end on the default stream, before which all of others would be, was before the free. */
  @Test
  void endOfWhatWasQueuedBefore_isNoEndOfTheFree() {
    for (On on : streams()) {
      long pool = driver.pools().deviceGetDefaultMemPool(0);
      long address = allocate(on, pool);
      driver.devices().ctxSynchronize(on.device);
      for (On other : streams()) {
        long event = driver.events().eventCreate(other.device, 0);
        driver.events().eventRecord(other.device, event, other.stream);
        CountDownLatch goOn = hold(on.device, on.stream);
        free(on, address);
        driver.events().eventSynchronize(other.device, event);
        assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED)).isEqualTo(BYTES);
        goOn.countDown();
        synchronize(on);
        assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED)).isZero();
        address = allocate(on, pool);
      }
      free(on, address);
      synchronize(on);
    }
  }

  /** Holds a stream beside others that are held, until the word is 1. */
  private MemorySegment holdAtAWord(On on) {
    MemorySegment word = driver.memory().memHostAlloc(0, 4, 0).fill((byte) 0);
    driver.streams().streamWaitValue32(on.device, on.stream, word.address(), 1, 1);
    return word;
  }

  /** Each once its own free is done, in whichever order. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void destroyedPool_givesBackWhatIsFreed_andNothingThatIsUsedStill(int first) {
    for (boolean isFreedBefore : new boolean[] {false, true}) {
      long pool = driver.pools().memPoolCreate(ON_FIRST);
      List<On> on = List.of(new On(0, stream(0)), new On(0, stream(0)));
      List<Long> memory = on.stream().map(each -> allocate(each, pool)).toList();
      List<MemorySegment> holds = on.stream().map(this::holdAtAWord).toList();
      for (int i = 0; i < 2; i++) {
        if (i == 1 && !isFreedBefore) {
          driver.pools().memPoolDestroy(pool);
        }
        free(on.get(i), memory.get(i));
      }
      if (isFreedBefore) {
        driver.pools().memPoolDestroy(pool);
      }
      long before = free(0);
      holds.get(first).set(ValueLayout.JAVA_INT, 0, 1);
      synchronize(on.get(first));
      assertThat(free(0) - before).isEqualTo(BYTES);
      holds.get(1 - first).set(ValueLayout.JAVA_INT, 0, 1);
      synchronize(on.get(1 - first));
      assertThat(free(0) - before).isEqualTo(2 * BYTES);
    }
  }
}
