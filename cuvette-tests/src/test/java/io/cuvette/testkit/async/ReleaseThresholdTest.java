package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.instrument.Faults;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.AtOnce;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Others' pools keep what is freed while an AsyncMemoryPool is open, and are then as they were. */
@Timeout(60)
class ReleaseThresholdTest {
  private static final int THRESHOLD = 4;
  private static final int RESERVED = 5;
  private static final long KEEP_ALL = -1;

  @CudaTest
  void poolOfTheDevice_keepsWhatIsFreed_untilClosed(Cuda cuda) {
    for (AsyncPoolChoice choice :
        List.of(AsyncPoolChoice.ofCurrent(), AsyncPoolChoice.ofDefault())) {
      long before = threshold(cuda);
      try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, Choices.first(cuda, choice))) {
        assertThat(pool.attributes().releaseThreshold()).isEqualTo(Long.MAX_VALUE);
        pool.allocate(64 * MIB).close();
        cuda.currentStream().synchronize();
        cuda.device(0).synchronize();
        assertThat(pool.totalBytes()).isGreaterThanOrEqualTo(64 * MIB);
      }
      assertThat(threshold(cuda)).isEqualTo(before);
      assertThat(reserved(cuda)).as("given back at once").isZero();
    }
  }

  @CudaTest
  void thresholdOfAnotherOwner_isRestored(Cuda cuda, DeviceMemoryResource foreign) {
    for (long before : new long[] {0, 5 * MIB, Long.MAX_VALUE}) {
      foreign.attributes().setReleaseThreshold(before);
      open(cuda, foreign).close();
      assertThat(foreign.attributes().releaseThreshold()).isEqualTo(before);
    }
  }

  @CudaTest
  void option_leavesItAlone(Cuda cuda) {
    AsyncPoolOptions alone = AsyncPoolOptions.DEFAULTS.withThresholdRaised(false);
    long before = threshold(cuda);
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault(), alone)) {
      assertThat(threshold(cuda)).isEqualTo(before);
      pool.allocate(64 * MIB).close();
      cuda.currentStream().synchronize();
      assertThat(pool.totalBytes()).isZero();
    }
    assertThat(threshold(cuda)).isEqualTo(before);
    try (AsyncMemoryPool own = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0), alone)) {
      assertThat(own.attributes().releaseThreshold()).isEqualTo(Long.MAX_VALUE);
    }
  }

  @CudaTest
  void lastOfSeveral_restoresIt_inWhateverOrderTheyClose(Cuda cuda, DeviceMemoryResource foreign) {
    foreign.attributes().setReleaseThreshold(5 * MIB);
    for (int first = 0; first < 3; first++) {
      List<AsyncMemoryPool> pools = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        pools.add(open(cuda, foreign));
      }
      pools.remove(first).close();
      pools.removeLast().close();
      assertThat(foreign.attributes().releaseThreshold()).isEqualTo(Long.MAX_VALUE);
      pools.removeFirst().close();
      assertThat(foreign.attributes().releaseThreshold()).isEqualTo(5 * MIB);
    }
  }

  @CudaTest
  void valueOfSomebodyElseMeanwhile_stays(Cuda cuda, DeviceMemoryResource foreign) {
    foreign.attributes().setReleaseThreshold(5 * MIB);
    try (AsyncMemoryPool pool = open(cuda, foreign)) {
      pool.attributes().setReleaseThreshold(7 * MIB);
    }
    assertThat(foreign.attributes().releaseThreshold()).isEqualTo(7 * MIB);
    AsyncMemoryPool first = open(cuda, foreign);
    foreign.attributes().setReleaseThreshold(9 * MIB);
    AsyncMemoryPool second = open(cuda, foreign); // raises it again
    assertThat(foreign.attributes().releaseThreshold()).isEqualTo(Long.MAX_VALUE);
    second.close();
    first.close();
    assertThat(foreign.attributes().releaseThreshold()).isEqualTo(9 * MIB);
  }

  @CudaTest
  void currentPool_isRestored_whicheverIsCurrentLater(Cuda cuda, DeviceMemoryResource other) {
    CudaDriver driver = cuda.driver();
    long born = driver.pools().deviceGetMemPool(0);
    long before = threshold(cuda);
    other.attributes().setReleaseThreshold(5 * MIB);
    AsyncMemoryPool overBorn = new AsyncMemoryPool(cuda);
    try {
      driver.pools().deviceSetMemPool(0, other.handle());
      overBorn.close();
      assertThat(driver.pools().memPoolGetAttribute(born, THRESHOLD)).isEqualTo(before);
      AsyncMemoryPool overOther = new AsyncMemoryPool(cuda);
      assertThat(other.attributes().releaseThreshold()).isEqualTo(Long.MAX_VALUE);
      driver.pools().deviceSetMemPool(0, born);
      overOther.close();
    } finally {
      driver.pools().deviceSetMemPool(0, born);
    }
    assertThat(other.attributes().releaseThreshold()).isEqualTo(5 * MIB);
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void constructorThatFailsMidway_leavesNothingRaised(Cuda cuda) {
    AsyncPoolChoice none = AsyncPoolChoice.ofHandle(0x1234); // no pool at all
    assertThatThrownBy(() -> new AsyncMemoryPool(cuda, List.of(AsyncPoolChoice.ofDefault(), none)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(threshold(cuda)).isZero();
  }

  @Test
  void endOfTheCuda_restoresIt() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2"))) {
      long pool = driver.pools().deviceGetDefaultMemPool(1);
      Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(ScriptedDriver.keptOpen(driver)));
      AsyncMemoryPool open = new AsyncMemoryPool(cuda);
      open.allocate(64 * MIB, cuda.device(1).nullStream()).close();
      assertThat(driver.pools().memPoolGetAttribute(pool, THRESHOLD)).isEqualTo(KEEP_ALL);
      cuda.close();
      assertThat(open.isClosed()).isTrue();
      assertThat(driver.pools().memPoolGetAttribute(pool, THRESHOLD)).isZero();
      assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED)).isZero();
    }
  }

  /** The owner's pool is there until the threshold is restored, whoever of the two is closed. */
  @Test
  void endOfTheCuda_restoresThePoolOfAResource_beforeItIsDestroyed() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=1"))) {
      Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(ScriptedDriver.keptOpen(driver)));
      DeviceMemoryResource resource = ownPool(cuda);
      resource.attributes().setReleaseThreshold(MIB);
      open(cuda, resource);
      cuda.close();
      assertThat(driver.report()).isEmpty();
    }
  }

  /** Each call of opening, using and closing fails once: nothing stays raised. */
  @Test
  void oneFault_leavesNothingRaised() {
    boolean reached = true;
    for (int call = 1; reached; call++) {
      try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2"))) {
        Faults faults = Faults.at(ScriptedDriver.keptOpen(driver), call);
        try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(faults.driver()));
            AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
          pool.allocate(MIB).close();
        } catch (CudaException e) {
          assertThat(e).hasMessageContaining("injected");
        }
        reached = faults.fired();
        assertThat(reached || call > 30).as("what is swept has more calls").isTrue();
        for (int device = 0; device < 2; device++) {
          long pool = driver.pools().deviceGetDefaultMemPool(device);
          assertThat(driver.pools().memPoolGetAttribute(pool, THRESHOLD))
              .as("call %d, device %d", call, device)
              .isZero();
        }
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void manyThreads_leaveItAsItWas(Cuda cuda, DeviceMemoryResource foreign) throws Exception {
    foreign.attributes().setReleaseThreshold(5 * MIB);
    for (int round = 0; round < 200; round++) {
      new AtOnce()
          .run(
              8,
              _ -> {
                try (AsyncMemoryPool pool = open(cuda, foreign)) {
                  assertThat(pool.attributes().releaseThreshold()).isEqualTo(Long.MAX_VALUE);
                }
              });
      assertThat(foreign.attributes().releaseThreshold()).as("round %d", round).isEqualTo(5 * MIB);
    }
  }

  /** One at a time: each raises it, and none does so from what the other has raised. */
  @CudaTest(simulatedOnly = true)
  void threadThatWaitsForAnothersTurn_goesOnAfterIt(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource foreign) throws Exception {
    foreign.attributes().setReleaseThreshold(5 * MIB);
    List<FutureTask<AsyncMemoryPool>> opening = new ArrayList<>();
    try (Hold hold = driver.hold("memPoolSetAttribute")) {
      opening.add(new FutureTask<>(() -> open(cuda, foreign)));
      Thread.ofPlatform().daemon().start(opening.getFirst());
      hold.awaitBegun();
      opening.add(new FutureTask<>(() -> open(cuda, foreign)));
      Thread second = Thread.ofPlatform().daemon().start(opening.getLast());
      while (second.isAlive() && second.getState() != Thread.State.WAITING) {
        Thread.onSpinWait();
      }
    }
    for (FutureTask<AsyncMemoryPool> each : opening) {
      each.get(40, TimeUnit.SECONDS).close();
    }
    assertThat(foreign.attributes().releaseThreshold()).isEqualTo(5 * MIB);
  }

  private static AsyncMemoryPool open(Cuda cuda, DeviceMemoryResource foreign) {
    return new AsyncMemoryPool(
        cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(foreign.handle())));
  }

  private static DeviceMemoryResource ownPool(Cuda cuda) {
    return new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
  }

  private static long threshold(Cuda cuda) {
    return cuda.driver()
        .pools()
        .memPoolGetAttribute(cuda.driver().pools().deviceGetDefaultMemPool(0), THRESHOLD);
  }

  private static long reserved(Cuda cuda) {
    return cuda.driver()
        .pools()
        .memPoolGetAttribute(cuda.driver().pools().deviceGetDefaultMemPool(0), RESERVED);
  }

  /** All is more than the largest number: the driver has a number of its own for it. */
  @CudaTest(simulatedOnly = true)
  void thresholdThatIsSet_isTheDrivers_andAllIsAll(Cuda cuda, ScriptedDriver driver) {
    driver.note(
        "memPoolSetAttribute",
        call -> call.number("attribute") == THRESHOLD ? call.number("value") + "" : null);
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      for (long bytes : new long[] {0, 1, MIB, Long.MAX_VALUE - 1, Long.MAX_VALUE}) {
        driver.takeNotes();
        resource.attributes().setReleaseThreshold(bytes);
        assertThat(driver.takeNotes())
            .containsExactly(Long.toString(bytes == Long.MAX_VALUE ? KEEP_ALL : bytes));
        assertThat(resource.attributes().releaseThreshold()).isEqualTo(bytes);
      }
    }
  }

  /** What every device has already is not asked for again, by whoever borrows the pool next. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void accessToTheHostsPool_isRequestedOnce(Cuda cuda, ScriptedDriver driver) {
    driver.note(
        "memPoolSetAccess", call -> Arrays.toString(call.argument("locationIds", int[].class)));
    new PinnedMemoryResource(cuda).close();
    assertThat(driver.takeNotes()).allMatch(devices -> !devices.equals("[]"));
    new PinnedMemoryResource(cuda).close();
    assertThat(driver.takeNotes()).isEmpty();
  }
}
