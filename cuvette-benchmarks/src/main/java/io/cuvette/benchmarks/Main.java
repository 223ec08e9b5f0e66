package io.cuvette.benchmarks;

/**
 * The main class of the benchmarks' jar: {@code lwjgl} runs the raw binding beside which Cuvette is
 * measured; anything else goes to JMH. Stateless.
 */
public final class Main {
  private Main() {}

  /**
   * Runs what the first argument names.
   *
   * @param arguments {@code lwjgl}, or JMH's own arguments
   * @throws java.io.IOException if JMH cannot write its results
   */
  public static void main(String[] arguments) throws java.io.IOException {
    String first = arguments.length == 0 ? "" : arguments[0];
    switch (first) {
      case "lwjgl" -> LwjglDriverCalls.run();
      default -> org.openjdk.jmh.Main.main(arguments);
    }
  }
}
