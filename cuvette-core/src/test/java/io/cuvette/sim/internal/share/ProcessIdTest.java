package io.cuvette.sim.internal.share;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Processes, of which another may get the number later. */
@EnabledOnOs(OS.LINUX)
class ProcessIdTest {
  private static final long UNKNOWN = -2;

  @Test
  void process_isAliveUntilItEnds_orAnotherHasItsNumber() {
    ProcessId current = ProcessId.current();
    assertThat(current.pid()).isEqualTo(ProcessHandle.current().pid());
    assertThat(current.startTicks()).isPositive();
    assertThat(current.isAlive()).isTrue();
    assertThat(new ProcessId(current.pid(), UNKNOWN).isAlive()).isTrue();
    assertThat(new ProcessId(current.pid(), current.startTicks() + 1).isAlive()).isFalse();
    assertThat(new ProcessId(current.pid(), current.startTicks() - 1).isAlive()).isFalse();
    assertThat(new ProcessId(current.pid(), 0).isAlive()).isFalse();
  }

  @Test
  void processThatHasEnded_isNotAlive_whateverIsKnownOfIt() throws Exception {
    int ended = ended();
    for (long start : new long[] {UNKNOWN, -1, 0, ProcessId.current().startTicks()}) {
      assertThat(new ProcessId(ended, start).isAlive()).as("%d", start).isFalse();
    }
  }

  private static int ended() throws IOException, InterruptedException {
    Process process = new ProcessBuilder("true").start();
    assertThat(process.waitFor()).isZero();
    return (int) process.pid();
  }
}
