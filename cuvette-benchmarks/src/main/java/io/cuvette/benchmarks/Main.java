package io.cuvette.benchmarks;

import io.cuvette.Cuda;
import io.cuvette.benchmarks.facts.Facts;
import java.util.ArrayList;
import java.util.List;

/**
 * The main class of the benchmarks' jar: {@code side-by-side}, {@code facts} and {@code lwjgl} run
 * one part of the comparisons with other libraries, {@code sanitizer} measures what the sanitizer
 * costs; anything else goes to JMH. Stateless.
 */
public final class Main {
  private static final int CANNOT_RUN_HERE = 3;
  private static final String DEVICE = "cuvette.device";
  private static final String FORK_OPTION = "-jvmArgsAppend";

  private Main() {}

  /**
   * Runs what the first argument names; exit status 3 if it cannot run on this machine.
   *
   * @param arguments {@code side-by-side pools|ordered|driver|launches|graphs|replay FILE…}, {@code
   *     facts SECTION}, {@code sanitizer}, {@code lwjgl}, or JMH's own arguments
   * @throws Exception if JMH fails
   */
  public static void main(String[] arguments) throws Exception {
    List<String> list = List.of(arguments);
    switch (list.isEmpty() ? "" : list.getFirst()) {
      case "side-by-side" -> exit(SideBySide.run(list.subList(1, list.size())));
      case "facts" -> exit(Facts.run(list.subList(1, list.size())));
      case "sanitizer" -> new SanitizerWork(new Lines("cuvette-simulated"), 10_000, 7).run();
      case "lwjgl" -> exit(LwjglDriverCalls.run());
      default -> org.openjdk.jmh.Main.main(withDevice(list).toArray(String[]::new));
    }
  }

  /** Without a device given, JMH's forks run on the GPU if there is one, else without. */
  private static List<String> withDevice(List<String> arguments) {
    boolean given = System.getProperty(DEVICE) != null || System.getenv("CUVETTE_DEVICE") != null;
    if (given || arguments.contains(FORK_OPTION)) {
      return arguments;
    }
    String device = Cuda.isAvailable() ? "gpu" : "sim";
    System.err.println("device: " + device + " (-D" + DEVICE + "=… or CUVETTE_DEVICE for another)");
    System.setProperty(DEVICE, device); // for -f 0
    List<String> all = new ArrayList<>(arguments);
    all.add(FORK_OPTION);
    all.add("-D" + DEVICE + "=" + device);
    return all;
  }

  private static void exit(boolean measured) {
    if (!measured) {
      System.exit(CANNOT_RUN_HERE);
    }
  }
}
