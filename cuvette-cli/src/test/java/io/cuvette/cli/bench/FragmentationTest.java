package io.cuvette.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.cli.Run;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;

class FragmentationTest {
  private static final long GIB = 1L << 30;

  private static List<Map<String, Object>> bench(String... options) {
    String[] command = {"bench", "fragmentation", "--quick", "--json", "--device"};
    String[] all = Arrays.copyOf(command, command.length + options.length);
    System.arraycopy(options, 0, all, command.length, options.length);
    Run run = Run.of(all);
    assertThat(run.code()).as(run.err()).isZero();
    return run.json();
  }

  private static double share(List<Map<String, Object>> lines, String pool, String mix) {
    return lines.stream()
        .filter(line -> pool.equals(line.get("pool")))
        .filter(line -> line.get("work").equals("fragmentation-" + mix))
        .mapToDouble(line -> (Double) line.get("share"))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void eachMixOnEachPool_isOneJsonObject() {
    List<Map<String, Object>> lines = bench("sim:memory=4GiB");
    assertThat(lines)
        .extracting(line -> line.get("pool") + " " + line.get("work"))
        .containsExactly(
            "memory fragmentation-uniform-64MiB",
            "memory fragmentation-uniform-1GiB",
            "memory fragmentation-uniform-4GiB",
            "memory fragmentation-log-uniform-4GiB",
            "memory fragmentation-batch-drift",
            "elastic fragmentation-uniform-64MiB",
            "elastic fragmentation-uniform-1GiB",
            "elastic fragmentation-uniform-4GiB",
            "elastic fragmentation-log-uniform-4GiB",
            "elastic fragmentation-batch-drift",
            "async fragmentation-uniform-64MiB",
            "async fragmentation-uniform-1GiB",
            "async fragmentation-uniform-4GiB",
            "async fragmentation-log-uniform-4GiB",
            "async fragmentation-batch-drift");
    assertThat(lines)
        .allSatisfy(line -> {
          long memory = (Long) line.get("memoryBytes");
          long usable = (Long) line.get("usableBytes");
          assertThat(memory).isBetween(3 * GIB, 4 * GIB);
          assertThat(usable).isBetween(memory / 3, memory);
          assertThat((Double) line.get("share")).isEqualTo((double) usable / memory);
          assertThat((Long) line.get("failedBytes")).isBetween(0L, usable);
          assertThat((Long) line.get("allocations")).isPositive();
          assertThat(line).containsEntry("seed", 1L).containsEntry("simulated", true);
        });
  }

  @Test
  void poolWithoutCache_losesOnlyWhatItsSizesAreRoundedBy() {
    // The simulated driver rounds to 2 MiB, half of which the average block loses.
    List<Map<String, Object>> lines = bench("sim:memory=80GiB", "--pool", "direct");
    assertThat(share(lines, "direct", "uniform-64MiB")).isBetween(0.95, 0.995);
    assertThat(share(lines, "direct", "uniform-4GiB")).isGreaterThan(0.995);
  }

  @Test
  void elasticPool_keepsADeviceFuller() {
    List<Map<String, Object>> lines = bench("sim:memory=80GiB", "--pool", "elastic,memory");
    for (String mix : List.of("uniform-1GiB", "uniform-4GiB", "log-uniform-4GiB", "batch-drift")) {
      double elastic = share(lines, "elastic", mix);
      assertThat(elastic).as(mix).isGreaterThan(0.95);
      assertThat(share(lines, "memory", mix)).as(mix).isLessThan(elastic - 0.05);
    }
  }

  @Test
  void seed_repeatsARun() {
    String[] options = {"sim:memory=4GiB", "--pool", "memory", "--seed", "7"};
    List<Map<String, Object>> first = bench(options);
    assertThat(bench(options)).isEqualTo(first);
    options[options.length - 1] = "8";
    assertThat(bench(options))
        .extracting(line -> line.get("usableBytes"))
        .doesNotContainAnyElementsOf(first.stream().map(line -> line.get("usableBytes")).toList());
  }

  @Test
  void sizes_areThoseOfTheirMix() {
    for (Mix mix : Mix.values()) {
      long most = mix.mostBytes(140 * GIB);
      assertThat(mix.mostBytes(80 * GIB)).as("%s", mix).isEqualTo(most);
      assertThat(mix.mostBytes(8 * GIB)).as("%s, smaller", mix).isEqualTo(most / 10);
      LongSupplier sizes = mix.sizes(most, new SplittableRandom(1));
      long[] drawn = new long[8000];
      Arrays.setAll(drawn, _ -> sizes.getAsLong());
      assertThat(Arrays.stream(drawn)).as("%s", mix).allMatch(bytes -> bytes >= 1 && bytes <= most);
      assertThat(Arrays.stream(drawn).max().orElseThrow()).isGreaterThan(most * 9 / 10);
      double mean = Arrays.stream(drawn).average().orElseThrow() / most;
      switch (mix) {
        case LOG_UNIFORM_4_GIB -> assertThat(mean).isBetween(0.05, 0.08); // 1 / ln(4 Mi)
        case BATCH_DRIFT -> assertThat(mean).isBetween(0.21, 0.24); // 255 / 128 / 8 / 1.1
        default -> assertThat(mean).isBetween(0.48, 0.52);
      }
    }
    long[] batch = new long[8];
    LongSupplier layers = Mix.BATCH_DRIFT.sizes(2 * GIB, new SplittableRandom(1));
    Arrays.setAll(batch, _ -> layers.getAsLong());
    for (int i = 1; i < batch.length; i++) {
      assertThat((double) batch[i] / batch[i - 1]).as("layer %s", i).isBetween(1.999, 2.001);
    }
  }
}
