package io.cuvette.testkit.seeds;

import org.junit.jupiter.api.Test;

/** A few right programs; {@code -Dcuvette.seeds=10000} runs as many. */
class RightProgramsTest {
  private static final int FEW = 24;

  @Test
  void rightProgram_isRight_underEverySeed() throws Exception {
    int count = Integer.getInteger("cuvette.seeds", FEW);
    for (int seed = 0; seed < count; seed++) {
      try {
        new RightProgram(seed).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }
}
