package io.cuvette.testkit.races;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.CudaDriver;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;

/** One operation beside one closer, many times. Confined to the thread that runs it. */
final class Cell {
  /** Rounds that are prepared together, and then run one by one. */
  private static final int BATCH = 50;

  /** So many batches there are at least: what grows is seen after the first. */
  private static final int BATCHES = 5;

  /**
   * What a wait makes free is freed after it; a pool of the driver whose last block that is waits
   * for that free once more, and goes with the look after it.
   */
  private static final int LOOKS = 3;

  /** What the last rounds may have left to be given back a little later. */
  private static final int ON_ITS_WAY = 4;

  /** Steps of some 40 ns that one thread starts later: the length of most operations, and more. */
  private static final int NEAR = 400;

  private static final int FAR = 4_000;

  /** More than any operation makes. */
  private static final int MOST_CALLS = 100;

  final Operation operation;
  final Closer closer;
  final Outcomes outcomes = new Outcomes();
  private final SplittableRandom random = new SplittableRandom(1);

  Cell(Operation operation, Closer closer) {
    this.operation = operation;
    this.closer = closer;
  }

  /**
   * Runs all rounds on a driver that nobody else uses meanwhile, or as many as there is time for.
   *
   * @param isLate whether the time is over; one round runs in any case
   */
  void run(CudaDriver base, int rounds, BooleanSupplier isLate) throws Exception {
    CountedDriver driver = new CountedDriver(base);
    if (closer == Closer.CUDA) {
      endCuda(driver, rounds, isLate);
    } else {
      endOther(driver, rounds, isLate);
    }
    check(driver);
  }

  private void check(CountedDriver driver) {
    driver.misused().forEach(outcomes::fail);
    if (!driver.live().isEmpty()) {
      outcomes.left(driver.live().toString());
    }
  }

  /**
   * Stops the operation before each of its calls while the closer runs, and the closer before each
   * of its calls while the operation runs, on a driver that nobody else uses meanwhile.
   */
  void step(CudaDriver base) throws Exception {
    CountedDriver driver = new CountedDriver(base);
    for (boolean stopsCloser : new boolean[] {false, true}) {
      boolean goesOn = true;
      try (Step step = new Step(driver);
          Cuda cuda = open(driver)) {
        Map<String, Integer> before = Map.of();
        for (int call = 0; goesOn && call < MOST_CALLS && outcomes.passed(); call++) {
          Cuda used = closer == Closer.CUDA ? open(driver) : cuda;
          goesOn = step(step, new Stage(used, driver.theirs(), false), stopsCloser, call);
          if (closer == Closer.CUDA) {
            used.close();
          }
          if (call == 0) {
            before = settled(cuda, driver);
          }
        }
        checkNotGrown(before, settled(cuda, driver));
      }
    }
    check(driver);
  }

  private boolean step(Step step, Stage stage, boolean stopsCloser, int call) throws Exception {
    Runnable prepared = operation.prepare().apply(stage);
    AutoCloseable end = stage.end(closer);
    Runnable body = () -> outcomes.run(prepared);
    Runnable ending = () -> outcomes.runEnd(end);
    boolean wasThere = stopsCloser ? step.run(call, ending, body) : step.run(call, body, ending);
    stage.close();
    return wasThere;
  }

  private void endCuda(CountedDriver driver, int rounds, BooleanSupplier isLate) throws Exception {
    int done = 0;
    while (goesOn(done, rounds, isLate)) {
      List<Stage> stages = new ArrayList<>();
      for (int i = 0; i < batch(done, rounds); i++) {
        stages.add(new Stage(open(driver), driver.theirs(), false));
      }
      done += stages.size();
      race(stages);
      for (Stage stage : stages) {
        stage.cuda.close();
      }
    }
  }

  private void endOther(CountedDriver driver, int rounds, BooleanSupplier isLate) throws Exception {
    try (Cuda cuda = open(driver)) {
      Map<String, Integer> before = Map.of();
      int done = 0;
      while (goesOn(done, rounds, isLate)) {
        List<Stage> stages = new ArrayList<>();
        for (int i = 0; i < batch(done, rounds); i++) {
          stages.add(new Stage(cuda, driver.theirs(), false));
        }
        race(stages);
        if (done <= 1) {
          before = settled(cuda, driver);
        }
        done += stages.size();
      }
      checkNotGrown(before, settled(cuda, driver));
    }
  }

  /** Before the Cuda takes all back. */
  private void checkNotGrown(Map<String, Integer> before, Map<String, Integer> after) {
    if (outcomes.passed() && grew(before, after)) {
      outcomes.left("%s (before: %s)".formatted(after, before));
    }
  }

  /** Whether more is live than what may be on its way. */
  static boolean grew(Map<String, Integer> before, Map<String, Integer> after) {
    return after.entrySet().stream()
        .anyMatch(one -> one.getValue() > before.getOrDefault(one.getKey(), 0) + ON_ITS_WAY);
  }

  private boolean goesOn(int done, int rounds, BooleanSupplier isLate) {
    return done < rounds && outcomes.passed() && (done == 0 || !isLate.getAsBoolean());
  }

  /** One round comes first, as it may take all the time there is. */
  private static int batch(int done, int rounds) {
    return done == 0 ? 1 : Math.min(Math.clamp(rounds / BATCHES, 1, BATCH), rounds - done);
  }

  private void race(List<Stage> stages) throws Exception {
    List<Duel.Pair> pairs = new ArrayList<>();
    for (Stage stage : stages) {
      Runnable body = operation.prepare().apply(stage);
      AutoCloseable end = stage.end(closer);
      int most = random.nextInt(8) == 0 ? FAR : NEAR;
      pairs.add(
          new Duel.Pair(
              () -> outcomes.run(body), () -> outcomes.runEnd(end), random.nextInt(-most, most)));
    }
    Duel.run(pairs);
    for (Stage stage : stages) {
      stage.close();
    }
  }

  static Cuda open(CountedDriver driver) {
    return Cuda.open(
        CudaOptions.DEFAULTS
            .withDriver(driver.open())
            .withMemoryLimit(MemoryLimit.none())
            .withLeakListener(_ -> {}));
  }

  /** What is live once nothing is on its way. */
  static Map<String, Integer> settled(Cuda cuda, CountedDriver driver) {
    for (int i = 0; i < LOOKS; i++) {
      cuda.device(0).synchronize();
      cuda.leaksFound();
    }
    cuda.devices().forEach(cuda.defaultMemoryPool()::freeAllBlocks);
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
    cuda.defaultMemoryPool().assertConsistent();
    cuda.defaultPinnedMemoryPool().assertConsistent();
    return driver.live();
  }

  @Override
  public String toString() {
    return operation + " beside the end of: " + closer.title();
  }
}
