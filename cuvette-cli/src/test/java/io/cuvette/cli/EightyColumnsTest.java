package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What people read fits a terminal of 80 columns. */
class EightyColumnsTest {
  @TempDir Path folder;

  static Stream<String> commands() {
    return Stream.of(
        "--help",
        "help",
        "help info",
        "help demo",
        "help replay",
        "help bench",
        "help example",
        "help help",
        "--version",
        "info --device sim",
        "info --device sim:devices=32,numaNodes=64 --attributes",
        "info --device sim:driver=11000",
        "example --list",
        "demo --device sim:devices=2",
        "bench pools driver launch --quick --device sim:devices=2,memory=80GiB,seed=1234567890",
        "bench fragmentation --quick --pool memory,elastic --device sim:devices=2,memory=2GiB",
        "example memory-pool --device sim",
        "example limits --device sim",
        "example devices --device sim:devices=2",
        "example custom-allocator --device sim",
        "example async-pool --device sim",
        "example pinned --device sim",
        "example pinned-resource --device sim",
        "example managed --device sim",
        "example arrays --device sim",
        "example transfers --device sim",
        "example dlpack --device sim",
        "example concurrent-streams --device sim",
        "example memory-optimization --device sim",
        "example event-timing --device sim",
        "example growable --device sim",
        "example streams --device sim",
        "example events --device sim",
        "example memory-info --device sim",
        "example profile --device sim");
  }

  @ParameterizedTest
  @MethodSource("commands")
  void everyLine_fits(String command) {
    assertFits(Run.of(command.split(" ")));
  }

  @Test
  void tableOfReplay_fits_alsoWithLongNames() throws IOException {
    Path trace = folder.resolve("a-very-long-name-of-a-trace-".repeat(5) + ".csv");
    Files.writeString(
        trace, "Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0x1000,1000,0x0\n");
    assertFits(
        Run.of(
            "replay",
            trace.toString(),
            "--pool",
            "memory,async,direct",
            "--device",
            "sim:seed=123456789"));
  }

  private static void assertFits(Run run) {
    assertThat(run.code()).as(run.err()).isZero();
    List<String> lines = run.out().lines().toList();
    assertThat(lines).isNotEmpty().allSatisfy(line -> assertThat(line).hasSizeLessThan(81));
  }
}
