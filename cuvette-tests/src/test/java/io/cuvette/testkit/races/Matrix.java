package io.cuvette.testkit.races;

import io.cuvette.Cuda;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Queue;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.ObjIntConsumer;
import java.util.regex.Pattern;

/** All operations beside all closers that can end something they use. */
final class Matrix {
  /** Which cells run; all as a rule. */
  private static final Pattern ONLY = Pattern.compile(System.getProperty("cuvette.races", ""));

  /** Whether each cell is told of when it ends: on a GPU some take long. */
  private static final boolean PRINTS = Boolean.getBoolean("cuvette.races.print");

  private static final long PATIENCE_MINUTES = 25;

  final List<Cell> cells;
  private final String device;

  private Matrix(String device, List<Cell> cells) {
    this.device = device;
    this.cells = cells;
  }

  /** The cells of a device; what an operation asks for when it is prepared decides which. */
  static Matrix of(String device) throws Exception {
    List<Cell> cells = new ArrayList<>();
    try (CudaDriver base = openDriver(device);
        Cuda cuda = Cell.open(new CountedDriver(base))) {
      for (Operation operation : Operations.all()) {
        if (!operation.needsSimulator() || base.isSimulated()) {
          for (Closer closer : closers(operation, cuda, base)) {
            Cell cell = new Cell(operation, closer);
            if (ONLY.matcher(cell.toString()).find()) {
              cells.add(cell);
            }
          }
        }
      }
    }
    return new Matrix(device, cells);
  }

  private static Set<Closer> closers(Operation operation, Cuda cuda, CudaDriver base)
      throws Exception {
    Set<Closer> closers = EnumSet.copyOf(uses(operation, new Stage(cuda, base, false)));
    if (!Collected.waitsForOthers(operation)
        && uses(operation, new Stage(cuda, base, true)).size() > 1) {
      closers.add(Closer.COLLECTOR);
    }
    return closers;
  }

  private static Set<Closer> uses(Operation operation, Stage stage) throws Exception {
    try {
      var _ = operation.prepare().apply(stage);
      return stage.closers();
    } finally {
      stage.close();
    }
  }

  /**
   * Runs all cells, as many at a time as there are pairs of processors.
   *
   * @param rounds the rounds of each cell
   * @param seconds how long all cells may take together, of which each gets its share; 0 for as
   *     long as it takes
   */
  void run(int rounds, int seconds) throws Exception {
    long start = System.nanoTime();
    try (CudaDriver base = openDriver(device);
        Cuda _ = Cell.open(new CountedDriver(base))) { // so that contexts are not made for each
      race(rounds, new Share(start, TimeUnit.SECONDS.toNanos(seconds) * 2 / 3));
      collect(rounds, new Share(start, TimeUnit.SECONDS.toNanos(seconds)));
    }
    if (PRINTS) {
      System.err.printf("%d cells in %d s%n", cells.size(), seconds(System.nanoTime() - start));
    }
  }

  private static long seconds(long nanos) {
    return TimeUnit.NANOSECONDS.toSeconds(nanos);
  }

  /** Runs all cells but the collector's, each stopped before each call of either side. */
  void step() throws Exception {
    try (CudaDriver base = openDriver(device);
        Cuda _ = Cell.open(new CountedDriver(base))) {
      // who is stopped takes no processor
      forEach(
          Runtime.getRuntime().availableProcessors() + 1,
          (cell, _) -> run(cell, driver -> cell.step(driver)));
    }
  }

  private void race(int rounds, Share time) throws Exception {
    int count = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);
    forEach(
        count,
        (cell, left) -> {
          BooleanSupplier isLate = time.of(1 + (double) left / count);
          run(cell, driver -> cell.run(driver, rounds, isLate));
        });
  }

  /** Gives each cell but the collector's, and how many are left, to one of some threads. */
  private void forEach(int count, ObjIntConsumer<Cell> task) throws Exception {
    Queue<Cell> left = new ConcurrentLinkedQueue<>(cells);
    left.removeIf(cell -> cell.closer == Closer.COLLECTOR);
    List<Thread> workers = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      workers.add(
          Thread.ofPlatform()
              .daemon()
              .start(() -> {
                for (Cell cell = left.poll(); cell != null; cell = left.poll()) {
                  task.accept(cell, left.size());
                }
              }));
    }
    long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(PATIENCE_MINUTES);
    for (Thread worker : workers) {
      long millis = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
      worker.join(Math.max(1, millis));
      if (worker.isAlive()) {
        throw new AssertionError(
            "hangs: %s at %s".formatted(worker.getName(), List.of(worker.getStackTrace())));
      }
    }
  }

  List<Cell> failed() {
    return cells.stream().filter(cell -> !cell.outcomes.passed()).toList();
  }

  private void run(Cell cell, Rounds rounds) {
    Thread.currentThread().setName(cell.toString());
    long start = System.nanoTime();
    try (CudaDriver driver = openDriver(device)) {
      rounds.run(driver);
    } catch (Throwable e) { // what a cell throws outside its rounds fails it
      cell.outcomes.fail(e);
    }
    tell(cell, start);
  }

  /** What a cell does with a driver. */
  @FunctionalInterface
  private interface Rounds {
    void run(CudaDriver driver) throws Exception;
  }

  private void collect(int rounds, Share time) throws Exception {
    List<Cell> collected = cells.stream().filter(cell -> cell.closer == Closer.COLLECTOR).toList();
    if (!collected.isEmpty()) {
      try (CudaDriver driver = openDriver(device)) {
        Collected.checkCollects(driver);
        new Collected(collected, driver).run(rounds, time);
      }
    }
  }

  /**
   * Says on standard error that a cell has done what it does since a start of System.nanoTime().
   */
  static void tell(Cell cell, long start) {
    if (PRINTS) {
      long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      System.err.printf("%6d ms %s: %s%n", millis, cell, cell.outcomes);
    }
  }

  static CudaDriver openDriver(String device) {
    String name = device.split(":", 2)[0];
    for (CudaDriverProvider provider : ServiceLoader.load(CudaDriverProvider.class)) {
      if (provider.name().equals(name)) {
        return provider.open(device.contains(":") ? device.substring(name.length() + 1) : "");
      }
    }
    throw new IllegalArgumentException("device: " + device);
  }
}
