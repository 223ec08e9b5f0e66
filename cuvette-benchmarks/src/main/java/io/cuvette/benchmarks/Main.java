package io.cuvette.benchmarks;

import java.util.List;

/**
 * The main class of the benchmarks' jar: {@code side-by-side} and {@code lwjgl} run one part of the
 * comparison with the anchors; anything else goes to JMH. Stateless.
 */
public final class Main {
  private static final int CANNOT_RUN_HERE = 3;

  private Main() {}

  /**
   * Runs what the first argument names; exit status 3 if it cannot run on this machine.
   *
   * @param arguments {@code side-by-side pools|driver|replay FILE…}, {@code lwjgl}, or JMH's own
   *     arguments
   * @throws Exception if JMH fails
   */
  public static void main(String[] arguments) throws Exception {
    String first = arguments.length == 0 ? "" : arguments[0];
    switch (first) {
      case "side-by-side" -> exit(SideBySide.run(List.of(arguments).subList(1, arguments.length)));
      case "lwjgl" -> exit(LwjglDriverCalls.run());
      default -> org.openjdk.jmh.Main.main(arguments);
    }
  }

  private static void exit(boolean measured) {
    if (!measured) {
      System.exit(CANNOT_RUN_HERE);
    }
  }
}
