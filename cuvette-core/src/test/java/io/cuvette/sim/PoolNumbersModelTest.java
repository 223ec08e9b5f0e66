package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The numbers of a pool after each step of a random program, beside a sum. */
class PoolNumbersModelTest extends SimTestBase {
  private static final long STEP = 2 * MIB;
  private static final int STEPS = 200;
  private static final int THRESHOLD = 4;
  private static final int RESERVED = 5;
  private static final int RESERVED_HIGH = 6;
  private static final int USED = 7;
  private static final int USED_HIGH = 8;

  private final long stream = stream(0);
  private final TreeMap<Long, Long> live = new TreeMap<>();
  private long pool;
  private long threshold;
  private long usedHigh;
  private long reservedHigh;

  private long get(int attribute) {
    return driver.pools().memPoolGetAttribute(pool, attribute);
  }

  private void set(int attribute, long value) {
    driver.pools().memPoolSetAttribute(pool, attribute, value);
  }

  private long used() {
    return live.values().stream().mapToLong(bytes -> (bytes + 511) / 512 * 512).sum();
  }

  private void allocate(long bytes, long most) {
    try {
      live.put(driver.ordered().memAllocFromPoolAsync(0, bytes, pool, stream), bytes);
    } catch (CudaException e) {
      assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
      assertThat(most).as("a pool without a limit has all that it needs").isPositive();
      assertThat(get(RESERVED)).isLessThanOrEqualTo(most);
      reservedHigh = Math.max(reservedHigh, get(RESERVED_HIGH));
      return;
    }
    driver.streams().streamSynchronize(0, stream);
  }

  private void free(Random random) {
    long address = (long) live.keySet().toArray()[random.nextInt(live.size())];
    live.remove(address);
    if (random.nextBoolean()) {
      driver.ordered().memFreeAsync(0, address, stream);
      driver.streams().streamSynchronize(0, stream);
    } else {
      driver.memory().memFree(0, address);
    }
  }

  private void assertNumbers(boolean isOnDevice) {
    long reserved = get(RESERVED);
    usedHigh = Math.max(usedHigh, used());
    reservedHigh = Math.max(reservedHigh, reserved);
    assertThat(get(USED)).isEqualTo(used());
    assertThat(get(USED_HIGH)).isEqualTo(usedHigh);
    assertThat(reserved % STEP).isZero();
    assertThat(reserved).isGreaterThanOrEqualTo(used());
    assertThat(get(RESERVED_HIGH)).isEqualTo(reservedHigh);
    assertThat(get(THRESHOLD)).isEqualTo(threshold);
    assertThat(driver.devices().memGetInfo(0).freeBytes())
        .isEqualTo(64 * MIB - (isOnDevice ? reserved : 0));
    assertThat(driver.liveAllocations()).isEqualTo(live.size());
  }

  private void trim(long bytes) {
    long before = get(RESERVED);
    driver.pools().memPoolTrimTo(pool, bytes);
    assertThat(get(RESERVED)).isBetween(Math.min(before, (bytes + STEP - 1) / STEP * STEP), before);
    if (live.isEmpty()) {
      assertThat(get(RESERVED)).isEqualTo(Math.min(before, (bytes + STEP - 1) / STEP * STEP));
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 1, 0", "1, 1, 9000000", "1, 2, 0", "1, 3, 5000000", "2, 1, 0", "2, 0, 1"})
  void numbers_areThoseOfWhatIsAllocated(int type, int location, long most) {
    pool = driver.pools().memPoolCreate(new PoolProperties(type, 0, location, 0, most));
    long limit = (most + STEP - 1) / STEP * STEP;
    Random random = new Random(most + 8L * type + location);
    for (int step = 0; step < STEPS; step++) {
      switch (random.nextInt(10)) {
        case 0 -> trim(random.nextInt((int) (8 * MIB)));
        case 1 -> {
          threshold = random.nextInt(4) == 0 ? -1 : random.nextInt((int) (8 * MIB));
          set(THRESHOLD, threshold);
          threshold = get(THRESHOLD);
        }
        case 2 -> {
          set(USED_HIGH, 0);
          usedHigh = used();
        }
        case 3 -> {
          set(RESERVED_HIGH, 0);
          reservedHigh = get(RESERVED);
        }
        case 4, 5, 6 -> {
          if (!live.isEmpty()) {
            free(random);
          }
        }
        default -> {
          if (live.size() < 8) {
            allocate(1 + random.nextInt((int) (5 * MIB)), limit);
          }
        }
      }
      if (live.isEmpty()) {
        driver.streams().streamSynchronize(0, stream);
        long kept = threshold < 0 ? Long.MAX_VALUE : threshold / STEP * STEP;
        assertThat(get(RESERVED)).isLessThanOrEqualTo(kept);
      }
      assertNumbers(type == 1 && location == 1);
    }
    for (Map.Entry<Long, Long> each : live.entrySet()) {
      driver.memory().memFree(0, each.getKey());
    }
    driver.pools().memPoolDestroy(pool);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(64 * MIB);
    assertThat(driver.report()).doesNotContain("pool");
  }
}
