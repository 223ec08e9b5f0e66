package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.LeakLevel;
import io.cuvette.testkit.support.PeerCommand;
import java.io.BufferedReader;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A process whose heap is full when memory is allocated or closed loses none of it. The full run is
 * {@code -Dcuvette.pieces=100}.
 */
@Timeout(600)
class FullHeapTest {

  @Test
  void memoryAllocatedOrClosedWithAFullHeap_isNotLost() throws Exception {
    run(LeakLevel.COUNT);
  }

  @Test
  void blocksThatRememberTheirSite_areNotLost() throws Exception {
    run(LeakLevel.FULL, "pool");
  }

  /** Where free blocks are listed grows with their sizes, which may be just when they come back. */
  @Test
  void blocksThatCannotBeListed_comeBackLater() throws Exception {
    run(LeakLevel.COUNT, "growing");
  }

  @Test
  void whicheverAllocationFails_nothingIsLost() throws Exception {
    run(LeakLevel.COUNT, "each");
  }

  private static void run(LeakLevel level, String... arguments) throws Exception {
    List<String> command = PeerCommand.of(FullHeapProgram.class);
    command.addAll(List.of(arguments));
    command.replaceAll(each -> each.startsWith("-Xmx") ? "-Xmx6m" : each);
    command.add(1, "-Dcuvette.leaks=" + level);
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try (BufferedReader printed = process.inputReader()) {
      String all = printed.readAllAsString();
      assertThat(process.waitFor()).as(all).isZero();
      assertThat(all).matches("[1-9]\\d* of the steps had no heap\\n");
    } finally {
      process.destroyForcibly();
    }
  }
}
