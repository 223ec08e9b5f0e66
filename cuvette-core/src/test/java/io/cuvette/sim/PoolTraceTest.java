package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/**
 * Pools hold what those of an H200 held after each step of random programs, and refuse the same.
 */
class PoolTraceTest {
  private static final int THRESHOLD = 4;
  private static final int RESERVED = 5;
  private static final long STEP = 32L << 20;

  private final Map<String, Long> blocks = new HashMap<>();
  private final long[] streams = new long[4];
  private int used;
  private long pool;

  @Test
  void pools_holdWhatThoseOfAnH200Held_afterEachStep() throws IOException {
    int number = 0;
    int refused = 0;
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("memory=8GiB"));
        BufferedReader steps =
            new BufferedReader(
                new InputStreamReader(
                    Objects.requireNonNull(getClass().getResourceAsStream("pools-of-an-h200.txt")),
                    StandardCharsets.UTF_8))) {
      Arrays.setAll(streams, _ -> driver.streams().streamCreateWithPriority(0, 1, 0));
      for (String line; (line = steps.readLine()) != null; number++) {
        if (!line.startsWith("#")) {
          String[] words = line.split(" ");
          refused += words[0].equals("REFUSE") ? 1 : 0;
          step(driver, words);
          if (!words[0].equals("LIMIT")) {
            assertThat(driver.pools().memPoolGetAttribute(pool, RESERVED) / STEP)
                .as("line %d, %s", number, line)
                .isEqualTo(Long.parseLong(words[words.length - 1]));
          }
        }
      }
    }
    assertThat(number).isGreaterThan(2500);
    assertThat(refused).isGreaterThan(20);
  }

  private void step(SimulatedDriver driver, String[] words) {
    switch (words[0]) {
      case "LIMIT" -> {
        List.copyOf(blocks.keySet()).forEach(slot -> free(driver, slot));
        if (pool != 0) {
          driver.pools().memPoolDestroy(pool);
        }
        long limit = Long.parseLong(words[1]);
        used = Integer.parseInt(words[2]);
        pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, limit));
        driver.pools().memPoolSetAttribute(pool, THRESHOLD, -1);
      }
      case "ALLOCATE" -> blocks.put(words[1], allocate(driver, words));
      case "REFUSE" ->
          assertThatExceptionOfType(CudaException.class)
              .isThrownBy(() -> allocate(driver, words))
              .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
      case "FREE" -> free(driver, words[1]);
      case "TRIM" -> driver.pools().memPoolTrimTo(pool, Long.parseLong(words[1]));
      default -> throw new IllegalArgumentException(words[0]);
    }
    driver.devices().ctxSynchronize(0);
  }

  private long allocate(SimulatedDriver driver, String[] words) {
    long bytes = Long.parseLong(words[2]);
    return driver.ordered().memAllocFromPoolAsync(0, bytes, pool, stream(words[1]));
  }

  private void free(SimulatedDriver driver, String slot) {
    long address = Objects.requireNonNull(blocks.remove(slot));
    driver.ordered().memFreeAsync(0, address, stream(slot));
  }

  private long stream(String slot) {
    return streams[Integer.parseInt(slot) % used];
  }
}
