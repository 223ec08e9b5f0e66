package io.cuvette.testkit.seeds;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.instrument.SanitizerException;
import io.cuvette.testkit.seeds.ThreadsPlan.Wrong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A few right programs; {@code -Dcuvette.seeds=10000} runs as many. */
class RightProgramsTest {
  private static final int FEW = 12;

  /** Of a wrong program that is found in almost every run. */
  private static final int MOST_RUNS = 20;

  private static final int COUNT = Integer.getInteger("cuvette.seeds", FEW);

  @Test
  void rightProgram_isRight_underEverySeed() throws Exception {
    for (int seed = 0; seed < COUNT; seed++) {
      try {
        new RightProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  @Test
  void programThatWaitsForPartsAlone_isRight_underEverySeed() throws Exception {
    for (int seed = 0; seed < COUNT; seed++) {
      try {
        int _ = new PartsProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  /** They are longer than the others, so few are fewer. */
  @Test
  void programOfTheDriversCalls_isRight_underEverySeed() throws Exception {
    for (int seed = 0; seed < COUNT; seed += COUNT == FEW ? 4 : 1) {
      try {
        new DriverProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  @Test
  void programOfThreadsThatHandBuffersOn_isRight_underEverySeed() throws Exception {
    for (int seed = 0; seed < COUNT; seed += COUNT == FEW ? 5 : 1) {
      try {
        new HandoverProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  @Test
  void programOfAServer_isRight_underEverySeed() throws Exception {
    for (int seed = 0; seed < COUNT; seed += COUNT == FEW ? 5 : 1) {
      try {
        new ServiceProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  @Test
  void programOfRowsColumnsAndCallbacks_isRight_underEverySeed() throws Exception {
    for (int seed = 0; seed < COUNT; seed += COUNT == FEW ? 4 : 1) {
      try {
        new ShapesProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  @Test
  void programOfThreadsThatCallTheDriverAtOnce_isRight_underEverySeed() throws Exception {
    for (int seed = 0; seed < COUNT; seed++) {
      try {
        new ThreadsProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  /** Whatever the threads do by chance: nobody learns that the first use of a cell is done. */
  @Test
  void threadsWithoutOneOrderThatTheyNeed_areFound() throws Exception {
    int twins = 0;
    for (int seed = 0; seed < COUNT; seed++) {
      ThreadsProgram program = new ThreadsProgram(seed);
      for (Wrong wrong : program.wrongs(true)) {
        assertThat(program.find(wrong, MOST_RUNS)).as("seed %d: %s", seed, wrong).isNotNull();
        twins++;
      }
    }
    assertThat(twins).isPositive();
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void programsThatShareMemory_areRight_underEverySeed() {
    for (int seed = 0; seed < COUNT; seed += COUNT == FEW ? 3 : 1) {
      try {
        new SharingProgram(seed).run();
      } catch (RuntimeException | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  /**
   * The host fills parts of memory of which a kernel in a graph, given all of it, changes others.
   */
  @Test
  void programWhoseHostIsBesideAKernelOfAGraph_isRight() throws Exception {
    assertThat(new PartsProgram(5268).run()).isPositive();
  }

  /** In these nothing else waits for the same. */
  @ParameterizedTest
  @ValueSource(longs = {1, 3, 7, 9})
  void programThatForgetsOneWait_isFound(long seed) throws Exception {
    int waits = new PartsProgram(seed).run();
    assertThatThrownBy(() -> new PartsProgram(seed, waits / 2).run())
        .isInstanceOf(SanitizerException.class)
        .hasMessageContaining("RACE");
  }
}
