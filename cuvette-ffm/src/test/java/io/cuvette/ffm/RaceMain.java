package io.cuvette.ffm;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Runs some {@link RaceProgram}s one after the other, in a JVM that may not survive them, and says
 * which it survived. What else goes wrong ends it with a stack trace and another exit code than 0.
 *
 * <p>Arguments: the number of rounds of each program, and the programs' names.
 */
final class RaceMain {
  private RaceMain() {}

  public static void main(String[] arguments) throws Exception {
    int rounds = Integer.parseInt(arguments[0]);
    for (String name : Arrays.asList(arguments).subList(1, arguments.length)) {
      run(RaceProgram.valueOf(name), rounds);
      System.out.println("survived " + name);
    }
    System.exit(0);
  }

  private static void run(RaceProgram program, int rounds) throws Exception {
    Race race = new Race();
    try (Cuda keepsContexts = open()) {
      keepsContexts.device(0).synchronize();
      for (int round = 0; round < rounds; round++) {
        program.round(race);
      }
    }
    checkNothingLeft();
  }

  static Cuda open() {
    return Cuda.open(CudaOptions.DEFAULTS.withDevice("gpu").withLeakListener(_ -> {}));
  }

  private static void checkNothingLeft() {
    for (Standin.Count count : Standin.Count.values()) {
      long left = Standin.count(count).orElse(0L);
      if (left != 0) {
        throw new AssertionError("%s: %d after the last Cuda was closed".formatted(count, left));
      }
    }
  }

  /** Two or more threads at once, the others a little after the first, or before it. */
  static final class Race {
    private static final int MOST_SPINS = 20_000;

    private final SplittableRandom random = new SplittableRandom(1);
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    /**
     * Runs the parts together. Each may end early because something was closed, which is an
     * IllegalStateException.
     */
    void run(Runnable... parts) throws Exception {
      CyclicBarrier start = new CyclicBarrier(parts.length);
      Thread[] threads =
          Arrays.stream(parts)
              .map(part -> {
                int spins = random.nextInt(MOST_SPINS);
                return Thread.ofPlatform().daemon().start(() -> run(part, start, spins));
              })
              .toArray(Thread[]::new);
      for (Thread thread : threads) {
        thread.join();
      }
      if (failure.get() != null) {
        throw new AssertionError(failure.get());
      }
    }

    private void run(Runnable part, CyclicBarrier start, int spins) {
      try {
        start.await();
        for (int i = 0; i < spins; i++) {
          Thread.onSpinWait();
        }
        part.run();
      } catch (IllegalStateException e) {
        // Something that it needs was closed.
      } catch (Exception | Error e) {
        failure.compareAndSet(null, e);
      }
    }
  }

  /** Again and again, until something that it needs is closed. */
  static Runnable untilClosed(Runnable part) {
    return () -> {
      while (true) {
        part.run();
      }
    };
  }
}
