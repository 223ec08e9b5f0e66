package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Whatever other threads make and close at the moment: after the end nothing is left, nothing was
 * freed twice, and the driver is not called any more.
 */
@Timeout(300)
class CloseWhileInUseTest {
  private static final int ROUNDS = Integer.getInteger("cuvette.rounds", 5);

  @ParameterizedTest
  @EnumSource
  void cudaThatCloses_leavesNothing_whateverOtherThreadsDo(Contended what) {
    for (long seed = 0; seed < ROUNDS; seed++) {
      assertThat(new ClosingRound(what, seed).closeCuda()).as("seed %d", seed).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource
  void ownerThatCloses_leavesNothing_whateverOtherThreadsDo(Contended what) {
    for (long seed = 0; seed < ROUNDS; seed++) {
      assertThat(new ClosingRound(what, seed).closeOwner()).as("seed %d", seed).isEmpty();
    }
  }
}
