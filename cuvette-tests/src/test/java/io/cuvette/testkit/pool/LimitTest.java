package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.AtOnce;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class LimitTest {

  @CudaTest
  void newPool_hasNoLimit(MemoryPool pool) {
    assertThat(pool.limit()).isEqualTo(MemoryLimit.none());
    assertThat(pool.limitBytes()).isEqualTo(Long.MAX_VALUE);
  }

  @CudaTest
  void limitInBytes_isGivenBack(MemoryPool pool) {
    for (long bytes : new long[] {1, 1024, 1L << 33, Long.MAX_VALUE}) {
      pool.setLimit(MemoryLimit.ofBytes(bytes));
      assertThat(pool.limitBytes()).isEqualTo(bytes);
      assertThat(pool.limit()).isEqualTo(MemoryLimit.ofBytes(bytes));
      assertThat(pool.stats().limitBytes()).isEqualTo(bytes);
    }
    pool.setLimit(MemoryLimit.ofBytes(0));
    assertThat(pool.limit()).isEqualTo(MemoryLimit.none());
  }

  @CudaTest
  void fraction_isOfTheDevicesMemory(Cuda cuda, MemoryPool pool) {
    long total = cuda.device(0).totalBytes();
    pool.setLimit(MemoryLimit.ofFraction(0.5));
    assertThat(pool.limitBytes()).isEqualTo(total / 2);
    pool.setLimit(MemoryLimit.ofFraction(1.0));
    assertThat(pool.limitBytes()).isEqualTo(total);
    pool.setLimit(MemoryLimit.ofFraction(0));
    assertThat(pool.limitBytes()).isEqualTo(Long.MAX_VALUE);
  }

  @CudaTest(simulatedOnly = true)
  void poolWithALimitInBytes_doesNotAskForTheSizeOfTheDevice(Cuda cuda, ScriptedDriver script) {
    long before = script.count("deviceTotalMem");
    for (MemoryLimit limit : List.of(MemoryLimit.ofBytes(6 * UNIT), MemoryLimit.ofFraction(0.5))) {
      try (MemoryPool made = new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(limit))) {
        made.allocate(UNIT).close();
      }
      long asked = limit instanceof MemoryLimit.Fraction ? 1 : 0;
      assertThat(script.count("deviceTotalMem") - before).isEqualTo(asked);
    }
  }

  /** The block is what counts, not what is asked for of it: nothing is tried in vain. */
  @CudaTest
  void blockBeyondTheLimit_isRefusedAtOnce(MemoryPool pool) {
    for (long limit : new long[] {UNIT + 1, 2 * UNIT - 1}) {
      pool.setLimit(MemoryLimit.ofBytes(limit));
      assertThatThrownBy(() -> pool.allocate(UNIT + 1))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              e -> {
                assertThat(e.details().step()).isEqualTo(RecoveryStep.LIMIT);
              });
      pool.allocate(UNIT).close();
    }
  }

  @CudaTest
  void limitThatCannotBeComputed_leavesTheOneThereWas(MemoryPool pool, ScriptedDriver script) {
    pool.setLimit(MemoryLimit.ofBytes(6 * UNIT));
    script.fail("deviceTotalMem", CudaStatus.UNKNOWN, 1);
    assertThatThrownBy(() -> pool.setLimit(MemoryLimit.ofFraction(0.5)))
        .isInstanceOf(CudaException.class);
    assertThat(pool.limit()).isEqualTo(MemoryLimit.ofBytes(6 * UNIT));
    assertThat(pool.limitBytes()).isEqualTo(6 * UNIT);
  }

  /** Its Cuda tries again at its end; the pool has it no more. */
  @CudaTest(simulatedOnly = true)
  void chunkThatTheDriverDoesNotFree_isNoPartOfTheLimit(MemoryPool pool, ScriptedDriver script) {
    pool.setLimit(MemoryLimit.ofBytes(6 * UNIT));
    pool.allocate(6 * UNIT).close();
    script.fail("memFree", CudaStatus.INVALID_VALUE, 1);
    assertThatThrownBy(pool::freeAllBlocks).isInstanceOf(CudaException.class);
    assertThat(pool.totalBytes()).isZero();
    pool.assertConsistent();
    pool.allocate(6 * UNIT).close();
  }

  @Test
  void wrongLimits_areRefusedWithValueAndRule() {
    assertThatThrownBy(() -> MemoryLimit.ofBytes(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-1")
        .hasMessageContaining("expected: >= 1");
    for (double fraction : new double[] {-1, 1.1, Double.NaN, Double.POSITIVE_INFINITY}) {
      assertThatThrownBy(() -> MemoryLimit.ofFraction(fraction))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining(Double.toString(fraction));
    }
  }

  @CudaTest
  void limit_isOnWhatIsHeld_andCanBeRaised(MemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(6 * UNIT));
    try (Buffer _ = pool.allocate(5 * UNIT);
        Buffer _ = pool.allocate(UNIT)) {
      assertThatThrownBy(() -> pool.allocate(UNIT)).isInstanceOf(OutOfDeviceMemoryException.class);
      pool.setLimit(MemoryLimit.ofBytes(7 * UNIT));
      pool.allocate(UNIT).close();
    }
  }

  @CudaTest
  void smallerLimitThanWhatIsHeld_takesNothingAway(MemoryPool pool) {
    try (Buffer held = pool.allocate(8 * UNIT)) {
      pool.setLimit(MemoryLimit.ofBytes(2 * UNIT));
      held.fill((byte) 1);
      assertThat(pool.totalBytes()).isEqualTo(8 * UNIT);
      assertThatThrownBy(() -> pool.allocate(UNIT)).isInstanceOf(OutOfDeviceMemoryException.class);
    }
    try (Buffer small = pool.allocate(UNIT)) {
      assertThat(small.blockBytes()).isEqualTo(UNIT);
    }
  }

  @CudaTest
  void requestLargerThanTheLimit_isRefusedAtOnce_andReleasesNothing(MemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(6 * UNIT));
    pool.allocate(5 * UNIT).close();
    assertThatThrownBy(() -> pool.allocate(7 * UNIT))
        .isInstanceOf(OutOfDeviceMemoryException.class)
        .hasMessageContaining("limit=3072");
    assertThat(pool.freeBytes()).isEqualTo(5 * UNIT);
  }

  @CudaTest(devices = 2)
  void devices_haveLimitsOfTheirOwn(Cuda cuda, MemoryPool pool) {
    pool.setLimit(cuda.device(1), MemoryLimit.ofBytes(UNIT));
    assertThat(pool.limit(cuda.device(0))).isEqualTo(MemoryLimit.none());
    assertThat(pool.limit(cuda.device(1))).isEqualTo(MemoryLimit.ofBytes(UNIT));
    pool.allocate(4 * UNIT, cuda.device(0).nullStream()).close();
    assertThatThrownBy(() -> pool.allocate(2 * UNIT, cuda.device(1).nullStream()))
        .isInstanceOf(OutOfDeviceMemoryException.class)
        .hasMessageContaining("on device 1");
  }

  @CudaTest(devices = 2)
  void firstLimit_holdsOnEveryDevice(Subject subject) {
    Cuda cuda = subject.open(options -> options.withMemoryLimit(MemoryLimit.ofFraction(0.25)));
    for (var device : cuda.devices()) {
      assertThat(cuda.defaultMemoryPool().stats(device).limitBytes())
          .isEqualTo(device.totalBytes() / 4);
    }
  }

  @CudaTest
  void poolsOwnFirstLimit_winsOverTheCudas(Subject subject) {
    Cuda cuda = subject.open(options -> options.withMemoryLimit(MemoryLimit.ofBytes(4 * UNIT)));
    try (MemoryPool inherits = new MemoryPool(cuda);
        MemoryPool own =
            new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(UNIT)))) {
      assertThat(inherits.limitBytes()).isEqualTo(4 * UNIT);
      assertThat(own.limitBytes()).isEqualTo(UNIT);
      assertThat(cuda.defaultMemoryPool().limitBytes()).isEqualTo(4 * UNIT);
    }
  }

  @CudaTest
  void threadsThatGrowAtOnce_neverHoldMoreThanTheLimit(MemoryPool pool)
      throws InterruptedException {
    pool.setLimit(MemoryLimit.ofBytes(20 * UNIT));
    List<Buffer> got = Collections.synchronizedList(new ArrayList<>());
    new AtOnce().run(8, _ -> takeAll(pool, got));
    assertThat(got).hasSize(20);
    assertThat(pool.stats().peakHeldBytes()).isEqualTo(20 * UNIT);
    got.forEach(Buffer::close);
  }

  private static void takeAll(MemoryPool pool, List<Buffer> got) {
    try {
      while (true) {
        got.add(pool.allocate(UNIT));
      }
    } catch (OutOfDeviceMemoryException e) {
      // As many as fit.
    }
  }

  @Test
  void optionsKeepTheLimitTheyWereGiven() {
    MemoryLimit limit = MemoryLimit.ofFraction(0.5);
    assertThat(CudaOptions.DEFAULTS.withMemoryLimit(limit).memoryLimit()).isEqualTo(limit);
    assertThat(PoolOptions.DEFAULTS.withLimit(limit).limit()).isEqualTo(limit);
  }
}
