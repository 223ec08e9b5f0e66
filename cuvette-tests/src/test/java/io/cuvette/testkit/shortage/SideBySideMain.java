package io.cuvette.testkit.shortage;

import io.cuvette.testkit.shortage.BrimStep.Action;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * Runs random programs that fill a device to the brim on two devices at once, step by step, and
 * compares what comes of each step, which allocations fit, and what is free.
 *
 * <p>Arguments: two devices, such as {@code gpu} and {@code sim}, the first seed, and how many
 * seeds; or one device and the same, which prints each step in a line; or {@code compare} and two
 * files with such lines, of two devices that need not be in one machine.
 */
public final class SideBySideMain {
  private SideBySideMain() {}

  public static void main(String[] arguments) throws IOException {
    Locale.setDefault(Locale.ROOT);
    if (arguments[0].equals("compare")) {
      RecordedRuns runs = RecordedRuns.read(Path.of(arguments[1]), Path.of(arguments[2]));
      System.out.println(runs);
      System.exit(runs.isGood() ? 0 : 1);
    }
    boolean both = arguments.length == 4;
    long first = Long.parseLong(arguments[arguments.length - 2]);
    int count = Integer.parseInt(arguments[arguments.length - 1]);
    boolean good = true;
    for (long seed = first; seed < first + count; seed++) {
      BrimProgram program = BrimProgram.of(seed);
      if (both) {
        Comparison comparison = Comparison.of(program, List.of(arguments[0], arguments[1]));
        System.out.println(comparison);
        good &= comparison.isGood();
      } else {
        print(program, arguments[0]);
      }
    }
    System.exit(good ? 0 : 1);
  }

  private static void print(BrimProgram program, String device) {
    try (BrimSide side = new BrimSide(device, program, options -> options)) {
      System.out.printf("seed %d, rest %d%n", program.seed(), program.restBytes());
      int number = 0;
      for (BrimStep step : program.steps()) {
        String outcome = side.run(step);
        String free = step.action() == Action.ALLOCATE ? ", free " + side.free() : "";
        System.out.printf(
            "%d %s %s %d: %s%s%n",
            number++, step.action(), side.source(step), step.bytes(), outcome, free);
      }
    }
  }
}
