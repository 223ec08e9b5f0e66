package io.cuvette.sim.internal.share;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

@EnabledOnOs(OS.LINUX)
class ProcessIdTest {
  private static final long UNKNOWN = -2;

  /** No process has this number: there are at most 2^22. */
  private static final int NOBODY = Integer.MAX_VALUE;

  private final ProcessId current = ProcessId.current();

  @Test
  void processThatRuns_isAlive_butNotForOneThatStartedAtAnotherTime() {
    assertThat(current.isAlive()).isTrue();
    assertThat(new ProcessId(current.pid(), current.startTicks()).isAlive()).isTrue();
    assertThat(new ProcessId(current.pid(), current.startTicks() - 1).isAlive()).isFalse();
    assertThat(new ProcessId(current.pid(), current.startTicks() + 1).isAlive()).isFalse();
  }

  @Test
  void processWhoseStartIsNotKnown_isAliveIfThereIsOneOfItsNumber() {
    assertThat(new ProcessId(current.pid(), UNKNOWN).isAlive()).isTrue();
    assertThat(new ProcessId(NOBODY, UNKNOWN).isAlive()).isFalse();
    assertThat(new ProcessId(NOBODY, current.startTicks()).isAlive()).isFalse();
  }

  /** Even if it says that it is one that has ended. */
  @Test
  void processThatEnded_isNotAlive() {
    assertThat(new ProcessId(NOBODY, -1).isAlive()).isFalse();
  }
}
