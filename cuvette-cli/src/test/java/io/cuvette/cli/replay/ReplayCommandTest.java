package io.cuvette.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.cli.Run;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ReplayCommandTest {
  private static final String SMALL =
      TraceFiles.HEADER
          + "1,0,allocate,0x1000,1000,0x0\n"
          + "2,1,allocate,0x2000,2000,0x7f01\n"
          + "1,2,free,0x1000,1000,0x0\n"
          + "1,3,allocate,0x1000,300,0x0\n"
          + "2,4,allocate,0x3000,5000,0x2\n"
          + "2,5,allocate,0x4000,10,0x1\n";

  @TempDir Path folder;

  private String small() {
    return TraceFiles.write(folder, "small.csv", SMALL);
  }

  @Test
  void everyTraceOnEveryPool_isOneJsonObject() {
    String other = TraceFiles.gzip(folder, "other.csv.gz", SMALL);
    Run run =
        Run.of(
            "replay",
            small(),
            other,
            "--pool",
            "memory,async,direct,memory",
            "--device",
            "sim",
            "--json",
            "--repeat",
            "3");
    assertThat(run.code()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    assertThat(run.json())
        .extracting(line -> line.get("trace") + " " + line.get("pool"))
        .containsExactly(
            small() + " memory",
            small() + " async",
            small() + " direct",
            other + " memory",
            other + " async",
            other + " direct");
    assertThat(run.json().getFirst().keySet())
        .contains(
            "trace",
            "pool",
            "device",
            "operations",
            "peakLiveBytes",
            "peakHeldBytes",
            "ratio",
            "nsPerOperation",
            "firstNsPerOperation",
            "warmNsPerOperation",
            "driverCalls");
  }

  @Test
  void numbers_areThoseOfTheTrace() {
    Run run =
        Run.of(
            "replay",
            small(),
            "--pool",
            "memory,direct",
            "--device",
            "sim",
            "--json",
            "--repeat",
            "2");
    Map<String, Object> memory = run.json().getFirst();
    assertThat(memory)
        .containsEntry("operations", 6L)
        .containsEntry("streams", 4L)
        .containsEntry("passes", 2L)
        .containsEntry("simulated", true)
        .containsEntry("device", "sim")
        .containsEntry("peakLiveBytes", 7310L)
        .containsEntry("peakHeldBytes", 1024L + 2048 + 5120 + 512);
    assertThat((Double) memory.get("ratio")).isEqualTo(8704 / 7310.0);
    assertThat((Double) memory.get("nsPerOperation")).isPositive();
    assertThat((Long) memory.get("driverCalls")).isGreaterThanOrEqualTo(4);
    Map<String, Object> direct = run.json().get(1);
    assertThat(direct).containsEntry("peakHeldBytes", 7310L).containsEntry("ratio", 1.0);
    // Six operations, and questions about the streams that the pool before left behind.
    assertThat((Long) direct.get("driverCalls")).isBetween(6L, 10L);
  }

  /** What it waits for is an event, which is one more call of the driver at least. */
  @ParameterizedTest
  @ValueSource(strings = {"memory", "async"})
  void freeOnAnotherStream_isInItsOrder(String pool) {
    long[] calls = {0, 0};
    for (int i = 0; i < calls.length; i++) {
      String rows =
          "0,0,allocate,0x1000,5000,0x7f01\n0,0,allocate,0x2000,5000,0x7f02\n"
              + "0,0,free,0x1000,5000,0x7f0%d\n".formatted(1 + i);
      String file = TraceFiles.write(folder, "free" + i + ".csv", TraceFiles.HEADER + rows);
      Run run = Run.of("replay", file, "--pool", pool, "--device", "sim", "--json");
      assertThat(run.code()).as(run.err()).isZero();
      calls[i] = (Long) run.json().getFirst().get("driverCalls");
    }
    assertThat(calls[1]).isGreaterThan(calls[0]);
  }

  @Test
  void asyncPool_asksTheDriverEachTime_andHoldsWhatThatReserved() {
    Map<String, Object> line =
        Run.of("replay", small(), "--pool", "async", "--device", "sim", "--json").json().getFirst();
    assertThat(line)
        .containsEntry("pool", "async")
        .containsEntry("operations", 6L)
        .containsEntry("peakLiveBytes", 7310L)
        .containsEntry("peakHeldBytes", 32L << 20); // what a pool of the driver grows by
    assertThat((Long) line.get("driverCalls")).isBetween(6L, 24L);
    assertThat((Double) line.get("ratio")).isEqualTo((32L << 20) / 7310.0);
    String large =
        TraceFiles.write(
            folder,
            "large.csv",
            TraceFiles.HEADER
                + "0,0,allocate,0x1000,100000000,0x0\n0,0,free,0x1000,100000000,0x0\n"
                + "0,0,allocate,0x1000,50000000,0x0\n");
    assertThat(Run.of("replay", large, "--pool", "async", "--device", "sim", "--json").json())
        .singleElement()
        .satisfies(one -> assertThat(one).containsEntry("peakHeldBytes", 96L << 20));
  }

  @Test
  void singleStream_sharesWhatSeveralDoNot() {
    String trace =
        TraceFiles.write(
            folder,
            "two.csv",
            TraceFiles.HEADER
                + "0,0,allocate,0x1000,2048,0x10\n0,0,free,0x1000,2048,0x10\n"
                + "0,0,allocate,0x1000,2048,0x20\n");
    Map<String, Object> recorded =
        Run.of("replay", trace, "--device", "sim", "--json").json().getFirst();
    assertThat(recorded).containsEntry("peakHeldBytes", 4096L).containsEntry("streams", 2L);
    Map<String, Object> single =
        Run.of("replay", trace, "--device", "sim", "--json", "--stream-mode", "single")
            .json()
            .getFirst();
    assertThat(single)
        .containsEntry("peakHeldBytes", 2048L)
        .containsEntry("streams", 1L)
        .containsEntry("streamMode", "single");
  }

  @Test
  void allocationsTakeTurns_andFreesAreInOrderOfTheirStreams() {
    String trace =
        TraceFiles.write(
            folder,
            "turns.csv",
            TraceFiles.HEADER
                + "0,0,allocate,0x1000,2048,0x0\n0,0,free,0x1000,2048,0x0\n"
                + "0,0,allocate,0x1000,2048,0x0\n0,0,free,0x1000,2048,0x0\n"
                + "0,0,allocate,0x1000,2048,0x0\n0,0,free,0x1000,2048,0x0\n");
    // Below 4 KiB the pool keeps memory for its stream: it has a block for each stream in turn.
    for (int streams = 1; streams <= 4; streams++) {
      String mode = "turning:" + streams;
      Run run = Run.of("replay", trace, "--device", "sim", "--json", "--stream-mode", mode);
      assertThat(run.code()).as(run.err()).isZero();
      long used = Math.min(streams, 3);
      assertThat(run.json().getFirst())
          .containsEntry("streamMode", mode)
          .containsEntry("streams", used)
          .containsEntry("peakHeldBytes", 2048 * used);
    }
  }

  @Test
  void firstPass_isApartFromThoseThatFindThePoolWarm() {
    String[] command = {"replay", small(), "--device", "sim", "--json", "--repeat", "2"};
    Map<String, Object> two = Run.of(command).json().getFirst();
    double first = (Double) two.get("firstNsPerOperation");
    double warm = (Double) two.get("warmNsPerOperation");
    assertThat(first).isPositive();
    assertThat(warm).isPositive();
    assertThat(two).containsEntry("nsPerOperation", Math.min(first, warm));
    command[command.length - 1] = "1";
    Map<String, Object> one = Run.of(command).json().getFirst();
    assertThat(one.get("warmNsPerOperation")).as("there was no other pass").isNull();
    assertThat(one).containsEntry("nsPerOperation", one.get("firstNsPerOperation"));
  }

  @Test
  void traceOfTheRepository_hasTheRatioOfCupy() {
    Run run =
        Run.of(
            "replay",
            TraceFiles.ofRepository(),
            "--pool",
            "memory",
            "--device",
            "sim",
            "--json",
            "--repeat",
            "1");
    Map<String, Object> line = run.json().getFirst();
    assertThat(line).containsEntry("operations", 77_494L);
    assertThat((Double) line.get("ratio")).isBetween(1.3131 * 0.99, 1.3131 * 1.01);
    assertThat((Long) line.get("driverCalls")).isLessThan(1000);
  }

  @Test
  void text_isATable() {
    Run run = Run.of("replay", small(), "--device", "sim", "--repeat", "1");
    List<String> lines = run.out().lines().toList();
    assertThat(lines).as("two of the header, two of the row").hasSize(4);
    assertThat(lines.get(0)).matches("trace +pool +device");
    assertThat(lines.get(1))
        .matches(" +operations +peak live +peak held +ratio +first ns +warm ns +driver calls");
    assertThat(lines.get(2)).contains("small.csv").contains("sim (simulated)");
    assertThat(lines.get(3)).contains("1.1907");
  }

  @Test
  void malformedLine_leavesNothingHalfDone() {
    String bad = TraceFiles.write(folder, "bad.csv", SMALL + "1,6,free,0x9999,1,0x0\n");
    Run run = Run.of("replay", small(), bad, "--device", "sim", "--json");
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.err())
        .isEqualTo(
            "cuvette: "
                + bad
                + ":8: expected a pointer that is allocated, found '1,6,free,0x9999,1,0x0'\n");
  }

  @Test
  void outOfMemory_namesTheLine() {
    String large =
        TraceFiles.write(folder, "large.csv", SMALL + "1,6,allocate,0x9000,3000000000,0x0\n");
    for (String pool : List.of("memory", "async", "direct")) {
      Run run = Run.of("replay", large, "--pool", pool, "--device", "sim:memory=1GiB");
      assertThat(run.code()).isEqualTo(1);
      assertThat(run.out()).isEmpty();
      assertThat(run.err().lines()).hasSize(1);
      assertThat(run.err())
          .startsWith("cuvette: " + large + ":8: allocate of 3000000000 bytes failed: ")
          .contains("CUDA_ERROR_OUT_OF_MEMORY");
    }
  }

  @Test
  void sizeNoDeviceHas_isAFailureWithTheLine() {
    String huge =
        TraceFiles.write(
            folder, "huge.csv", SMALL + "1,6,allocate,0x9000,9223372036854760000,0x0\n");
    Run run = Run.of("replay", huge, "--pool", "memory", "--device", "sim");
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.err()).contains("huge.csv:8: allocate of 9223372036854760000 bytes failed");
  }

  @Test
  void simulatedDevice_isLargeEnoughForLargeTraces() {
    String large =
        TraceFiles.write(
            folder,
            "large.csv",
            TraceFiles.HEADER
                + "0,0,allocate,0x1000,300000000000,0x0\n0,0,free,0x1000,300000000000,0x0\n"
                + "0,0,allocate,0x1000,400000000000,0x0\n");
    Run run = Run.of("replay", large, "--pool", "memory,direct", "--device", "sim", "--json");
    assertThat(run.code()).as(run.err()).isZero();
    assertThat(run.json().getFirst()).containsEntry("peakLiveBytes", 400_000_000_000L);
  }

  @Test
  void traceWithoutOperations_hasNoRatio() {
    String none = TraceFiles.write(folder, "none.csv", TraceFiles.HEADER);
    Run run = Run.of("replay", none, "--device", "sim", "--json");
    assertThat(run.code()).as(run.err()).isZero();
    assertThat(run.json().getFirst())
        .containsEntry("operations", 0L)
        .containsEntry("ratio", null)
        .containsEntry("nsPerOperation", null);
    assertThat(Run.of("replay", none, "--device", "sim").out()).contains("-");
  }

  private Run limited(String file, String pool, String limit) {
    String[] command = {"replay", file, "--device", "sim", "--json", "--repeat", "1"};
    String[] all = Arrays.copyOf(command, command.length + 4);
    System.arraycopy(new String[] {"--pool", pool, "--limit", limit}, 0, all, command.length, 4);
    return Run.of(all);
  }

  @Test
  void traceWithinALittleMoreThanItsPeak_completesInTheElasticPool() {
    Run run = limited(TraceFiles.ofRepository(), "elastic", "1.03x+8MiB");
    assertThat(run.code()).as(run.err()).isZero();
    Map<String, Object> line = run.json().getFirst();
    long live = (Long) line.get("peakLiveBytes");
    long limit = Math.ceilDiv(live * 103, 100) + (8L << 20);
    assertThat(line).containsEntry("limitBytes", limit);
    assertThat((Long) line.get("peakHeldBytes")).isBetween(live, limit);
  }

  @Test
  void limitInBytes_isThatOfThePool() {
    for (String pool : List.of("memory", "elastic", "async")) {
      Run run = limited(small(), pool, "64MiB");
      assertThat(run.code()).as(run.err()).isZero();
      assertThat(run.json().getFirst()).containsEntry("limitBytes", 64L << 20);
    }
    assertThat(limited(small(), "memory", "119000000x").json().getFirst().get("limitBytes"))
        .isEqualTo(7310L * 119_000_000L);
    Run none = Run.of("replay", small(), "--device", "sim", "--json");
    assertThat(none.json().getFirst()).containsEntry("limitBytes", null);
  }

  @Test
  void limitThatIsReached_namesTheLine() {
    Run run = limited(small(), "memory", "1x");
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.err())
        .startsWith("cuvette: " + small() + ":6: allocate of 5000 bytes failed: ")
        .contains("limit=7310")
        .hasLineCount(1);
  }

  @Test
  void limitBelowThePeak_isRefusedBeforeAnythingIsReplayed() {
    String two =
        TraceFiles.write(folder, "two.csv", TraceFiles.HEADER + "0,0,allocate,0x10,20,0x0\n");
    Run run = Run.of("replay", two, small(), "--device", "sim", "--json", "--limit", "7309");
    assertThat(run.code()).isEqualTo(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.err())
        .isEqualTo(
            "cuvette: "
                + small()
                + ": a limit of 7309 bytes (expected: >= 7310, its peak live; --limit 7309)\n");
  }

  @Test
  void timeline_hasLiveAndHeldMemoryAtEachPoint() {
    String[] command = {"replay", small(), "--device", "sim", "--json", "--pool", "", ""};
    command[command.length - 2] = "memory,direct";
    command[command.length - 1] = "--timeline=3";
    List<Map<String, Object>> lines = Run.of(command).json();
    assertThat(lines.get(0).get("timeline"))
        .isEqualTo(
            List.of(
                List.of(2L, 3000L, 1024L + 2048),
                List.of(4L, 3000L, 1024L + 2048),
                List.of(6L, 7310L, 1024L + 2048 + 512 + 5120)));
    assertThat(lines.get(1).get("timeline"))
        .as("what is held without a pool is live, too")
        .isEqualTo(
            List.of(
                List.of(2L, 3000L, 3000L), List.of(4L, 3000L, 3000L), List.of(6L, 7310L, 7310L)));
    command[command.length - 1] = "--timeline=100000";
    assertThat((List<?>) Run.of(command).json().getFirst().get("timeline")).hasSize(6);
    command[command.length - 1] = "--timeline=4";
    assertThat((List<?>) Run.of(command).json().getFirst().get("timeline")).hasSize(4);
  }
}
