package io.cuvette.benchmarks;

import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedParameter;
import java.nio.charset.StandardCharsets;

/**
 * The kernel with four parameters that does nothing, as the anchors' programs have it. Stateless.
 */
final class NothingOfFour {
  /** What runs on the simulated device. */
  static final SimulatedKernel TWIN =
      SimulatedKernel.of(
          "nothingOfFour",
          _ -> {},
          SimulatedParameter.POINTER,
          SimulatedParameter.POINTER,
          SimulatedParameter.FLOAT,
          SimulatedParameter.INT);

  /** The text of {@code anchors/nothing_of_four.ptx} without its comment. */
  private static final String PTX =
      """
      .version 8.0
      .target sm_75
      .address_size 64
      .visible .entry nothingOfFour(.param .u64 x, .param .u64 y, .param .f32 factor, .param .u32 count)
      {
        ret;
      }
      """;

  private NothingOfFour() {}

  /** The code. */
  static byte[] ptx() {
    return PTX.getBytes(StandardCharsets.US_ASCII);
  }
}
