package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.schedule.SimScheduler;
import java.util.concurrent.CountDownLatch;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which freed memory an allocation may have: on its stream, behind events, by the policies. */
class PoolReuseTest {
  private static final long MIB = 1L << 20;
  private static final int FOLLOW_EVENTS = 1;
  private static final int OPPORTUNISTIC = 2;
  private static final int INTERNAL = 3;

  /** A driver with two streams and a pool of 32 MiB at most or without limit. */
  private record Scene(SimulatedDriver driver, long one, long other, long pool)
      implements AutoCloseable {

    /** What is freed stays pending until somebody waits. */
    static Scene of(long seed, int flags, long maxBytes) {
      SimulatedDriver driver =
          Attended.only(
              SimulatedDriver.open(
                  SimulatedOptions.DEFAULTS
                      .withSeed(seed)
                      .withPace(SimulatedPace.LAZY)
                      .withContextBytes(0)));
      return new Scene(
          driver,
          driver.streams().streamCreateWithPriority(0, flags, 0),
          driver.streams().streamCreateWithPriority(0, flags, 0),
          driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, maxBytes)));
    }

    long allocate(long stream) {
      return driver.ordered().memAllocFromPoolAsync(0, 32 * MIB, pool, stream);
    }

    void fill(long address, int value, long stream) {
      driver.transfers().memsetD8Async(0, address, (byte) value, 32 * MIB, stream);
    }

    /** Allocates, uses and frees on a stream. */
    void use(long stream) {
      long address = allocate(stream);
      fill(address, 1, stream);
      driver.ordered().memFreeAsync(0, address, stream);
    }

    void disable(int... policies) {
      for (int policy : policies) {
        driver.pools().memPoolSetAttribute(pool, policy, 0);
      }
    }

    void order(long first, long then) {
      long event = driver.events().eventCreate(0, 2);
      driver.events().eventRecord(0, event, first);
      driver.streams().streamWaitEvent(0, then, event);
      driver.events().eventDestroy(0, event);
    }

    /** How many times 32 MiB the pool holds. */
    long steps() {
      return driver.pools().memPoolGetAttribute(pool, 5) / (32 * MIB);
    }

    /** Runs what is queued, of which the host does not know. */
    void progress() {
      SimScheduler scheduler = driver.machine.scheduler;
      driver.machine.peek(() -> {
        boolean ran = true;
        while (ran) {
          ran = scheduler.step();
        }
        return ran;
      });
    }

    @Override
    public void close() {
      driver.devices().ctxSynchronize(0);
      driver.close();
    }
  }

  static LongStream seeds() {
    return LongStream.range(0, 20);
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void freedMemory_isReusedOnItsStreamAtOnce(long seed) {
    try (Scene scene = Scene.of(seed, 1, 0)) {
      scene.disable(FOLLOW_EVENTS, OPPORTUNISTIC, INTERNAL);
      for (int i = 0; i < 10; i++) {
        scene.use(scene.one);
      }
      assertThat(scene.steps()).isEqualTo(1);
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void freedMemory_isNotReusedOnAStreamThatIsNotOrdered(long seed) {
    try (Scene scene = Scene.of(seed, 1, 0)) {
      scene.use(scene.one);
      scene.use(scene.other);
      assertThat(scene.steps()).isEqualTo(2);
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void freedMemory_isReusedBehindEvents_ifThePolicyAllows(long seed) {
    for (int follow = 0; follow <= 1; follow++) {
      try (Scene scene = Scene.of(seed, 1, 0)) {
        scene.driver.pools().memPoolSetAttribute(scene.pool, FOLLOW_EVENTS, follow);
        scene.use(scene.one);
        // Through a third stream, and without regard to which device work is done.
        long third = scene.driver.streams().streamCreateWithPriority(0, 1, 0);
        scene.order(scene.one, third);
        scene.order(third, scene.other);
        scene.use(scene.other);
        assertThat(scene.steps()).isEqualTo(2 - follow);
      }
    }
  }

  @Test
  void eventRecordedBeforeTheFree_doesNotOrderIt() {
    try (Scene scene = Scene.of(0, 1, 0)) {
      long address = scene.allocate(scene.one);
      scene.order(scene.one, scene.other);
      scene.driver.ordered().memFreeAsync(0, address, scene.one);
      scene.use(scene.other);
      assertThat(scene.steps()).isEqualTo(2);
    }
  }

  /** Nor if it is waited for when the memory is free. */
  @Test
  void eventRecordedBeforeTheFree_doesNotOrderIt_whenTheWaitComesBehind() {
    try (Scene scene = Scene.of(0, 1, 0)) {
      scene.disable(OPPORTUNISTIC, INTERNAL);
      long address = scene.allocate(scene.one);
      long before = scene.driver.events().eventCreate(0, 2);
      scene.driver.events().eventRecord(0, before, scene.one);
      scene.driver.ordered().memFreeAsync(0, address, scene.one);
      long behind = scene.driver.events().eventCreate(0, 2);
      scene.driver.events().eventRecord(0, behind, scene.one);
      scene.driver.streams().streamWaitEvent(0, scene.other, before);
      scene.use(scene.other);
      assertThat(scene.steps()).isEqualTo(2);
      long third = scene.driver.streams().streamCreateWithPriority(0, 1, 0);
      scene.driver.streams().streamWaitEvent(0, third, behind);
      scene.use(third);
      assertThat(scene.steps()).isEqualTo(2);
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void orderByEvents_countsEvenIfTheFreeIsLongDone(long seed) {
    try (Scene scene = Scene.of(seed, 1, 0)) {
      scene.disable(OPPORTUNISTIC, INTERNAL);
      scene.use(scene.one);
      scene.order(scene.one, scene.other);
      scene.progress();
      scene.use(scene.other);
      assertThat(scene.steps()).isEqualTo(1);
    }
  }

  @Test
  void streamThatIsOrderedTwice_isSoFromTheFirstTimeOn() {
    try (Scene scene = Scene.of(0, 1, 0)) {
      scene.disable(OPPORTUNISTIC, INTERNAL);
      scene.use(scene.one);
      scene.order(scene.one, scene.other);
      long event = scene.driver.events().eventCreate(0, 2);
      scene.driver.events().eventRecord(0, event, scene.other);
      scene.order(scene.one, scene.other);
      long third = scene.driver.streams().streamCreateWithPriority(0, 1, 0);
      scene.driver.streams().streamWaitEvent(0, third, event);
      scene.use(third);
      assertThat(scene.steps()).isEqualTo(1);
    }
  }

  @Test
  void freeThatIsDone_isNotKnownFromTheEndOfAnotherStream() {
    try (Scene scene = Scene.of(0, 1, 0)) {
      scene.disable(FOLLOW_EVENTS, OPPORTUNISTIC, INTERNAL);
      scene.driver.pools().memPoolSetAttribute(scene.pool, 4, -1);
      scene.use(scene.other);
      scene.progress();
      scene.driver.streams().streamSynchronize(0, scene.one);
      scene.use(scene.one);
      assertThat(scene.steps()).isEqualTo(2);
    }
  }

  @Test
  void defaultStream_ordersBlockingStreams() {
    for (int flags = 0; flags <= 1; flags++) {
      try (Scene scene = Scene.of(0, flags, 0)) {
        scene.disable(OPPORTUNISTIC);
        scene.use(scene.one);
        scene.use(0);
        scene.use(scene.other);
        assertThat(scene.steps()).isEqualTo(1 + 2 * flags);
      }
    }
  }

  /** Of a limited pool the free of a stream is enough, if nothing may wait for another. */
  @Test
  void ownFree_isEnough_whereNoWaitMayBeInserted() {
    try (Scene scene = Scene.of(0, 1, 32 * MIB)) {
      scene.disable(FOLLOW_EVENTS, OPPORTUNISTIC, INTERNAL);
      for (int i = 0; i < 3; i++) {
        scene.use(scene.one);
      }
      scene.driver.streams().streamSynchronize(0, scene.one);
      scene.use(scene.other);
      assertThat(scene.steps()).isEqualTo(1);
    }
  }

  @Test
  void finishedFree_isReusedAnywhere_ifThePolicyAllows() {
    for (int allowed = 0; allowed <= 1; allowed++) {
      try (Scene scene = Scene.of(0, 1, 0)) {
        scene.driver.pools().memPoolSetAttribute(scene.pool, OPPORTUNISTIC, allowed);
        scene.use(scene.one);
        scene.progress();
        scene.use(scene.other);
        assertThat(scene.steps()).isEqualTo(2 - allowed);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void synchronizedFree_isReusedAnywhere_whateverThePolicies(long seed) {
    try (Scene scene = Scene.of(seed, 1, 0)) {
      scene.disable(FOLLOW_EVENTS, OPPORTUNISTIC, INTERNAL);
      scene.driver.pools().memPoolSetAttribute(scene.pool, 4, -1);
      scene.use(scene.one);
      scene.driver.streams().streamSynchronize(0, scene.one);
      scene.use(scene.other);
      scene.driver.streams().streamSynchronize(0, scene.one);
      scene.use(scene.one);
      assertThat(scene.steps()).as("the free on the other stream is not known").isEqualTo(2);
      scene.driver.devices().ctxSynchronize(0);
      scene.use(scene.other);
      scene.use(scene.other);
      assertThat(scene.steps()).isEqualTo(2);
    }
  }

  /** Also of a free that ran before anybody waited, and of one behind which more is queued. */
  @Test
  void freeThatIsDoneAlready_isKnownByAnyWaitForItsStream() {
    for (int way = 0; way < 6; way++) {
      for (boolean ran : new boolean[] {true, false}) {
        try (Scene scene = Scene.of(way, 1, 0)) {
          scene.disable(FOLLOW_EVENTS, OPPORTUNISTIC, INTERNAL);
          scene.driver.pools().memPoolSetAttribute(scene.pool, 4, -1);
          scene.use(scene.one);
          long event = scene.driver.events().eventCreate(0, 2);
          scene.driver.events().eventRecord(0, event, scene.one);
          if (ran) {
            scene.progress();
          }
          wait(way, scene, event);
          scene.use(scene.other);
          assertThat(scene.steps()).as("way %d, ran before: %b", way, ran).isEqualTo(1);
        }
      }
    }
  }

  private static void wait(int way, Scene scene, long event) {
    SimulatedDriver driver = scene.driver;
    boolean done = way < 4;
    switch (way) {
      case 0 -> driver.streams().streamSynchronize(0, scene.one);
      case 1 -> driver.events().eventSynchronize(0, event);
      case 2 -> driver.devices().ctxSynchronize(0);
      case 3 -> driver.memory().memFree(0, driver.memory().memAlloc(0, 64));
      default -> {}
    }
    while (!done) {
      done =
          way == 4
              ? driver.streams().streamQuery(0, scene.one)
              : driver.events().eventQuery(0, event);
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void fullPool_makesTheStreamWait_soThatTheMemoryIsNeverUsedTwice(long seed) {
    try (Scene scene = Scene.of(seed, 1, 32 * MIB)) {
      scene.driver.pools().memPoolSetAttribute(scene.pool, OPPORTUNISTIC, 0);
      long before = scene.allocate(scene.one);
      scene.fill(before, 1, scene.one);
      long used = scene.driver.events().eventCreate(0, 2);
      scene.driver.events().eventRecord(0, used, scene.one);
      scene.driver.ordered().memFreeAsync(0, before, scene.one);
      long address = scene.allocate(scene.other);
      scene.fill(address, 2, scene.other);
      scene.driver.ordered().memFreeAsync(0, address, scene.other);
      scene.driver.streams().streamSynchronize(0, scene.other);
      assertThat(scene.driver.events().eventQuery(0, used)).isTrue();
      assertThat(scene.driver.pools().memPoolGetAttribute(scene.pool, 8)).isEqualTo(32 * MIB);
      assertThat(scene.driver.pools().memPoolGetAttribute(scene.pool, 7)).isZero();
    }
  }

  @Test
  void fullPool_isOutOfMemory_ifNoWaitMayBeInserted() {
    try (Scene scene = Scene.of(0, 1, 32 * MIB)) {
      scene.disable(INTERNAL);
      scene.use(scene.one);
      org.assertj.core.api.Assertions.assertThatExceptionOfType(CudaException.class)
          .isThrownBy(() -> scene.allocate(scene.other))
          .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
      assertThat(scene.driver.liveAllocations()).isZero();
      scene.driver.streams().streamSynchronize(0, scene.one);
      scene.use(scene.other);
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void randomProgram_neverUsesMoreThanItHolds_andGivesAllBack(long seed) {
    java.util.Random random = new java.util.Random(seed);
    try (Scene scene = Scene.of(seed, (int) (seed % 2), 0)) {
      long[] streams = {
        scene.one, scene.other, 0, scene.driver.streams().streamCreateWithPriority(0, 1, 0)
      };
      java.util.List<long[]> live = new java.util.ArrayList<>();
      for (int step = 0; step < 400; step++) {
        long stream = streams[random.nextInt(streams.length)];
        int kind = random.nextInt(10);
        if (kind < 4) {
          long bytes = 1 + random.nextLong(20 * MIB);
          live.add(
              new long[] {
                scene.driver.ordered().memAllocFromPoolAsync(0, bytes, scene.pool, stream), stream
              });
        } else if (kind < 8 && !live.isEmpty()) {
          long[] freed = live.remove(random.nextInt(live.size()));
          if (freed[1] != stream) {
            scene.order(freed[1], stream);
          }
          scene.driver.transfers().memsetD8Async(0, freed[0], (byte) step, 1, stream);
          scene.driver.ordered().memFreeAsync(0, freed[0], stream);
        } else if (kind == 8) {
          scene
              .driver
              .pools()
              .memPoolSetAttribute(scene.pool, 1 + random.nextInt(3), random.nextInt(2));
        } else {
          scene.driver.streams().streamSynchronize(0, stream);
        }
        long reserved = scene.driver.pools().memPoolGetAttribute(scene.pool, 5);
        long used = scene.driver.pools().memPoolGetAttribute(scene.pool, 7);
        assertThat(used).as("seed=%d step=%d", seed, step).isBetween(0L, reserved);
        assertThat(scene.driver.liveAllocations()).isEqualTo(live.size());
      }
      scene.driver.devices().ctxSynchronize(0);
      live.forEach(block -> scene.driver.ordered().memFreeAsync(0, block[0], block[1]));
      scene.driver.devices().ctxSynchronize(0);
      assertThat(scene.steps()).isZero();
      assertThat(scene.driver.pools().memPoolGetAttribute(scene.pool, 7)).isZero();
      assertThat(scene.driver.devices().memGetInfo(0).freeBytes())
          .isEqualTo(scene.driver.devices().deviceTotalMem(0));
    }
  }

  /** Its free is not done with the stream that would be behind it, nor before what was behind. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void memoryFreedOnAStreamThatIsHeld_isNotFree_whateverIsDoneOnAnotherInOrder(boolean ofLegacy) {
    try (Scene scene = Scene.of(3, 0, 0)) {
      SimulatedDriver driver = scene.driver;
      scene.disable(FOLLOW_EVENTS, OPPORTUNISTIC, INTERNAL);
      long freeing = ofLegacy ? 0 : scene.one;
      long event = driver.events().eventCreate(0, 2);
      driver.events().eventRecord(0, event, ofLegacy ? scene.one : 0);
      long address = scene.allocate(freeing);
      driver.devices().ctxSynchronize(0);
      CountDownLatch goOn = SimTestBase.hold(driver, 0, freeing);
      try {
        driver.ordered().memFreeAsync(0, address, freeing);
        driver.events().eventSynchronize(0, event);
        if (ofLegacy) {
          assertThat(driver.streams().streamQuery(0, scene.one)).isTrue();
          driver.streams().streamSynchronize(0, scene.one);
        }
        long apart = driver.streams().streamCreateWithPriority(0, 1, 0);
        assertThat(scene.allocate(apart)).isNotEqualTo(address);
        assertThat(scene.steps()).isEqualTo(2);
      } finally {
        goOn.countDown();
      }
    }
  }
}
