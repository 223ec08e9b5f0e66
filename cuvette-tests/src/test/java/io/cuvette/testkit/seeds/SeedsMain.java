package io.cuvette.testkit.seeds;

import java.util.Locale;

/**
 * Runs seven right random programs under each of many seeds, on the simulated device below the
 * sanitizer, and prints which seeds failed: none should.
 *
 * <p>Arguments: the first seed, how many, and for how many seconds at most.
 */
public final class SeedsMain {
  private SeedsMain() {}

  public static void main(String[] arguments) {
    Locale.setDefault(Locale.ROOT);
    long first = Long.parseLong(arguments[0]);
    long count = Long.parseLong(arguments[1]);
    long end = System.nanoTime() + Long.parseLong(arguments[2]) * 1_000_000_000L;
    long done = 0;
    int failed = 0;
    while (done < count && System.nanoTime() < end) {
      long seed = first + done++;
      try {
        new RightProgram(seed).run();
        int _ = new PartsProgram(seed).run();
        new DriverProgram(seed).run();
        new HandoverProgram(seed).run();
        new ServiceProgram(seed).run();
        new ShapesProgram(seed).run();
        new ThreadsProgram(seed).run();
      } catch (Exception | AssertionError e) {
        failed++;
        System.out.println("seed " + seed + ": " + e);
        e.printStackTrace(System.out);
      }
    }
    System.out.printf(
        "seeds %,d to %,d: %,d of %,d ran, %,d failed%n",
        first, first + count - 1, done, count, failed);
    System.exit(failed == 0 && done == count ? 0 : 1);
  }
}
