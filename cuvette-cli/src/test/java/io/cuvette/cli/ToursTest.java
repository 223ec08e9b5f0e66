package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.examples.Example;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The demo and the examples, as their users run them. */
class ToursTest {
  static Stream<String> names() {
    return Example.ALL.stream().map(Example::name);
  }

  @ParameterizedTest
  @MethodSource("names")
  void example_checksItsResultsOnOneDevice(String name) {
    Run run = Run.of("example", name, "--device", "sim");
    assertThat(run.code()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    assertThat(run.out()).startsWith(name + " on ").contains("(simulated)").contains("  ok");
  }

  @ParameterizedTest
  @MethodSource("names")
  void example_writesJsonOnTwoDevices(String name) {
    Run run = Run.of("example", name, "--device", "sim:devices=2", "--json");
    assertThat(run.code()).as(run.err()).isZero();
    List<Map<String, Object>> lines = run.json();
    assertThat(lines).allSatisfy(line -> assertThat(line).containsEntry("example", name));
    assertThat(lines.getFirst()).containsEntry("simulated", true);
    assertThat(lines.getLast()).containsEntry("passed", true);
    long checked = lines.stream().filter(line -> Boolean.TRUE.equals(line.get("checked"))).count();
    assertThat(lines.getLast()).containsEntry("checks", checked);
    assertThat(checked).isPositive();
  }

  @Test
  void list_namesTheExamples() {
    Run run = Run.of("example", "--list");
    assertThat(run.code()).isZero();
    assertThat(run.out().lines().map(line -> line.split(" ")[0])).containsExactlyElementsOf(all());
    assertThat(Run.of("example", "--list", "--json").json())
        .extracting(line -> line.get("example"))
        .containsExactlyElementsOf(all());
  }

  @Test
  void list_hasItsSummariesInOneColumn() {
    List<String> lines = Run.of("example", "--list").out().lines().toList();
    for (int i = 0; i < lines.size(); i++) {
      String summary = Example.ALL.get(i).summary();
      assertThat(lines.get(i).indexOf(summary)).isEqualTo("memory-optimization ".length());
    }
  }

  @Test
  void example_hasPointsInItsNumbersWhereTheMachineHasCommas() throws Exception {
    Map<String, String> german = Map.of("JDK_JAVA_OPTIONS", "-Duser.language=de -Duser.country=DE");
    Run run = JvmRun.of(german, null, "example", "memory-optimization", "--device", "sim");
    assertThat(run.code()).as(run.err()).isZero();
    assertThat(run.out())
        .containsPattern("[0-9],[0-9]{3} bytes")
        .doesNotContainPattern("[0-9]\\.[0-9]{3} b");
  }

  @Test
  void timeOfTheSimulatedClock_isCalledSimulated() {
    Run run = Run.of("example", "concurrent-streams", "--device", "sim");
    assertThat(run.out()).containsPattern("first stream \\(simulated\\) +\\d+\\.\\d\\d ms");
  }

  private static List<String> all() {
    return List.of(
        "memory-pool",
        "limits",
        "devices",
        "custom-allocator",
        "async-pool",
        "pinned",
        "pinned-resource",
        "ipc",
        "managed",
        "growable",
        "arrays",
        "transfers",
        "dlpack",
        "concurrent-streams",
        "memory-optimization",
        "streams",
        "event-timing",
        "events",
        "kernel",
        "graph",
        "graph-memory",
        "memory-info",
        "profile");
  }

  @Test
  void memoryPool_walksFrom400BytesTo512AndBackTo0() {
    Run run = Run.of("example", "memory-pool", "--device", "sim", "--json");
    assertThat(values(run, "pool.usedBytes()")).containsExactly(0L, 512L, 0L, 0L);
    assertThat(values(run, "pool.totalBytes()")).containsExactly(0L, 512L, 512L, 0L);
    assertThat(values(run, "pinned.freeBlocks()")).containsExactly(0L, 1L, 1L, 0L);
  }

  private static List<Object> values(Run run, String name) {
    return run.json().stream()
        .filter(line -> name.equals(line.get("name")))
        .map(line -> line.get("value"))
        .toList();
  }

  @Test
  void demo_checksEveryStep() {
    Run text = Run.of("demo", "--device", "sim");
    assertThat(text.code()).as(text.err()).isZero();
    assertThat(text.out()).contains("10. Nothing is left behind").contains("as expected");
    Run json = Run.of("demo", "--device", "sim", "--json");
    assertThat(json.json().getLast()).containsEntry("passed", true);
  }

  @Test
  void tooLittleMemory_isAFailureThatSaysSo() {
    Run run = Run.of("example", "events", "--device", "sim:memory=2MiB");
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.err()).contains("CUDA_ERROR_OUT_OF_MEMORY").contains("requested=67108864");
    assertThat(run.err()).as("what is listed in lines").contains(" in the driver; requested=");
  }

  @ParameterizedTest
  @ValueSource(strings = {"8MiB", "63MiB"})
  void demo_withTooLittleMemory_saysWhatItNeeds(String memory) {
    Run run = Run.of("demo", "--device", "sim:context=0,memory=" + memory);
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).contains(" free (expected: at least 64.00 MiB)").hasLineCount(1);
    Run enough = Run.of("demo", "--device", "sim:context=0,memory=64MiB");
    assertThat(enough.code()).as(enough.err()).isZero();
  }

  @Test
  void memoryOptimization_saysThatItDoesLessWhereItIsSimulated() {
    Run run = Run.of("example", "memory-optimization", "--device", "sim");
    assertThat(run.out()).contains("20 products of 16 x 16").contains("not 100 of 5,000 x 5,000");
  }

  @Test
  void memory_isShownToTheByte() {
    for (String name : List.of("memory-optimization", "memory-info")) {
      assertThat(Run.of("example", name, "--device", "sim").out()).doesNotContain("0.00");
    }
  }

  @Test
  void managedMemory_withAnOldDriver_namesVersionsAsTheyAreWritten() {
    Run run = Run.of("example", "managed", "--device", "sim:driver=11000", "--json");
    assertThat(run.out()).contains("the driver supports CUDA 11.0 (expected: >= 13.0)");
  }

  @Test
  void bench_namesTheWorkAsTheAnchorsDo() {
    Run run = Run.of("bench", "driver", "launch", "--device", "sim", "--quick", "--json");
    assertThat(run.code()).as(run.err()).isZero();
    List<Map<String, Object>> lines = run.json();
    assertThat(lines)
        .extracting(line -> line.get("work"))
        .contains("call-cuStreamQuery", "call-cuMemAlloc+cuMemFree-1MiB")
        .endsWith(
            "launch",
            "launch-packed",
            "graph-launch",
            "graph-launch+synchronize",
            "graph-capture+instantiate",
            "graph-update");
    assertThat(lines)
        .filteredOn(line -> String.valueOf(line.get("work")).startsWith("launch"))
        .allSatisfy(line -> assertThat(line.get("nsPerLaunch")).isInstanceOf(Double.class));
    assertThat(lines)
        .filteredOn(line -> String.valueOf(line.get("work")).startsWith("graph"))
        .allSatisfy(line -> assertThat((double) line.get("nsPerGraph")).isPositive());
    assertThat(lines)
        .allSatisfy(line ->
            assertThat(line)
                .containsEntry("device", "sim")
                .containsEntry("simulated", true)
                .containsEntry("threads", 1L)
                .doesNotContainKey("pool"));
  }

  @Test
  void benchOfPools_hasTheSameWorkForEachPool() {
    Run run = Run.of("bench", "pools", "--device", "sim", "--quick", "--json");
    assertThat(run.code()).as(run.err()).isZero();
    List<Map<String, Object>> lines = run.json();
    List<String> works = new ArrayList<>(List.of("same-size-512 1", "same-size-1MiB 1"));
    works.add("random-live-1024-4MiB 1");
    for (String after : List.of("own-stream", "same-stream", "same-stream-mixed")) {
      for (int threads : new int[] {1, 2, 4, 8}) {
        works.add("threads-%d-%s %d".formatted(threads, after, threads));
      }
    }
    works.add("producer-consumer 2");
    for (String pool : List.of("memory", "elastic", "async", "direct")) {
      assertThat(lines)
          .filteredOn(line -> pool.equals(line.get("pool")))
          .extracting(line -> line.get("work") + " " + line.get("threads"))
          .isEqualTo(works);
    }
    assertThat(lines)
        .filteredOn(line -> "pinned".equals(line.get("pool")))
        .extracting(line -> line.get("work"))
        .startsWith("pinned-512", "pinned-1MiB", "pinned-random-live-64-4MiB", "pinned-threads-1")
        .endsWith("pinned-threads-8-mixed", "pinned-producer-consumer");
    assertThat(lines)
        .allSatisfy(line -> assertThat((Double) line.get("nsPerPair")).isPositive())
        .filteredOn(line -> String.valueOf(line.get("work")).contains("threads"))
        .allSatisfy(line ->
            assertThat((Double) line.get("pairsPerSecond") * (Double) line.get("nsPerPair"))
                .isBetween(0.999e9, 1.001e9));
  }

  @Test
  void benchOfPools_measuresThoseThatAreNamed_once() {
    String[] command = {"bench", "pools", "--device", "sim", "--quick", "--json", "--pool"};
    String[] named = Arrays.copyOf(command, command.length + 1);
    named[command.length] = "elastic,memory,elastic";
    assertThat(Run.of(named).json())
        .extracting(line -> line.get("pool"))
        .startsWith("elastic")
        .endsWith("memory")
        .containsOnly("elastic", "memory")
        .hasSize(2 * 16);
    Run text = Run.of("bench", "pools", "--pool", "memory", "--device", "sim", "--quick");
    assertThat(text.out()).contains("times of the simulator, not of a GPU").contains("<= 45");
  }

  @Test
  void benchOfPools_withTooLittleMemory_endsWithOneLine() {
    String[] command = {"bench", "pools", "--quick", "--pool", "memory", "--device", ""};
    command[command.length - 1] = "sim:memory=64MiB";
    Run run = Run.of(command);
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.err()).contains("CUDA_ERROR_OUT_OF_MEMORY").hasLineCount(1);
  }

  @Test
  void benchOfTransfers_hasEveryKindOfMemory_bothWays() {
    Run run = Run.of("bench", "transfers", "--device", "sim", "--quick", "--json");
    assertThat(run.code()).as(run.err()).isZero();
    List<Map<String, Object>> lines = run.json();
    for (String kind : List.of("pinned", "heap", "direct", "driver", "mapped")) {
      for (String size : List.of("4KiB", "64KiB", "1MiB", "16MiB")) {
        assertThat(lines)
            .extracting(line -> line.get("work"))
            .contains(
                "transfer-%s-h2d-%s".formatted(kind, size),
                "transfer-%s-d2h-%s".formatted(kind, size));
      }
    }
    assertThat(lines)
        .extracting(line -> line.get("work"))
        .contains("transfer-rows-h2d-1000x768", "transfer-rows-d2h-1000x768")
        .contains("transfer-pitched-h2d-1000x4KiB", "transfer-pitched-d2h-1000x4KiB")
        .contains("transfer-batch-h2d-1000x4KiB", "transfer-batch-d2h-1000x4KiB");
    assertThat(lines)
        .allSatisfy(line -> assertThat((double) line.get("gigabytesPerSecond")).isPositive());
  }

  @Test
  void benchOfArrays_hasProductsOfEachType_andOperationsOnElements() {
    Run run = Run.of("bench", "arrays", "--device", "sim", "--quick", "--json");
    assertThat(run.code()).as(run.err()).isZero();
    List<Map<String, Object>> lines = run.json();
    assertThat(lines)
        .extracting(line -> line.get("work"))
        .containsExactly(
            "product-float16-32",
            "product-bfloat16-32",
            "product-float32-32",
            "product-float64-32",
            "array-copy-64KiB",
            "array-sqrt-64KiB",
            "array-add-64KiB",
            "array-less-64KiB",
            "array-sum-64KiB");
    assertThat(lines.subList(0, 4))
        .allSatisfy(line -> assertThat((double) line.get("teraflops")).isPositive());
    assertThat(lines.subList(4, 9))
        .allSatisfy(line -> assertThat((double) line.get("gigabytesPerSecond")).isPositive());
  }
}
