package io.cuvette.testkit.races;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamCalls;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/**
 * Operations that are the last use of what they use, while the collector runs: all rounds of all
 * cells are held inside the driver together, so that one collection meets each. Confined to one
 * thread.
 */
final class Collected {
  /** Classes are loaded and calls linked before the rounds. */
  private static final int WARM_UP = 2;

  private static final int THREADS = 4_000;

  /** A GPU has addresses for some 250 pools. */
  private static final int THREADS_ON_A_GPU = 400;

  /** Each elastic pool reserves four times the memory of its device: so many fit into 128 TiB. */
  private static final int WINDOWS = 200;

  private static final int COLLECTIONS = 10;
  private static final int PATIENCE_SECONDS = 120;

  private final List<Cell> cells;
  private final CountedDriver driver;

  Collected(List<Cell> cells, CudaDriver base) {
    this.cells = cells;
    this.driver = new CountedDriver(base);
  }

  /**
   * Imports of one allocation take turns in the driver, and so do callbacks with frees of plain
   * memory: not all can be held there.
   */
  static boolean waitsForOthers(Operation operation) {
    return Stream.of("import", "fromAllocation", "addCallback")
        .anyMatch(operation.method()::contains);
  }

  void run(int rounds, Share time) throws Exception {
    int threads = driver.theirs().isSimulated() ? THREADS : THREADS_ON_A_GPU;
    int windows =
        (int) cells.stream().filter(cell -> cell.toString().contains("ElasticMemoryPool")).count();
    int most = Math.min(threads / Math.max(1, cells.size()), WINDOWS / Math.max(1, windows));
    int together = Math.clamp(most, 1, rounds);
    try (Cuda cuda = Cell.open(driver)) {
      for (int i = 0; i < cells.size(); i++) {
        long start = System.nanoTime();
        // as much time again is for what follows
        warmUp(cells.get(i), cuda, time.of(2.0 * cells.size() - i));
        Matrix.tell(cells.get(i), start);
      }
      Map<String, Integer> before = collected(cuda, Map.of());
      BooleanSupplier isLate = time.of(1);
      for (int done = 0; done < rounds && (done == 0 || !isLate.getAsBoolean()); done += together) {
        hold(cuda, Math.min(together, rounds - done));
      }
      Map<String, Integer> after = collected(cuda, before);
      if (Cell.grew(before, after)) {
        fail("left: %s (before: %s)".formatted(after, before));
      }
    }
    driver.misused().forEach(misuse -> fail(misuse.toString()));
    if (!driver.live().isEmpty()) {
      fail("left: " + driver.live());
    }
  }

  /**
   * Checks that a call with the handle of a stream alone fails here: else nothing is collected
   * while it is in use, and all cells pass for that.
   */
  static void checkCollects(CudaDriver base) throws Exception {
    Operation forgets =
        Operation.of(
            "a stream's handle without the stream",
            stage -> {
              CudaStream stream = stage.stream();
              StreamCalls calls = stage.cuda.driver().streams();
              return () -> calls.streamQuery(0, stream.handle());
            });
    Cell cell = new Cell(forgets, Closer.COLLECTOR);
    new Collected(List.of(cell), base).run(1, new Share(0, 0));
    if (cell.outcomes.passed()) {
      throw new AssertionError("%s: the collector does not find the stream".formatted(cell));
    }
  }

  /** Starts everything, collects while it is in the driver, and lets it go on. */
  private void hold(Cuda cuda, int rounds) throws InterruptedException {
    Held group = new Held(cells.size() * rounds);
    List<Thread> threads = new ArrayList<>();
    for (Cell cell : cells) {
      for (int i = 0; i < rounds; i++) {
        threads.add(thread(cell, prepared(cell, cuda), group));
      }
    }
    driver.stopAt(group);
    threads.forEach(Thread::start);
    if (!group.awaitAll(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      fail("threads neither call the driver nor end: " + group.missing());
    }
    collect();
    cuda.leaksFound();
    group.release();
    for (Thread thread : threads) {
      thread.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
      if (thread.isAlive()) {
        fail("hangs: %s at %s".formatted(thread.getName(), List.of(thread.getStackTrace())));
        return;
      }
    }
  }

  /**
   * Collects, and returns when all references that the collector cleared are in their queues: a
   * thread of the JVM puts them there, those of one collection before those of the next.
   */
  private static void collect() throws InterruptedException {
    for (int i = 0; i < 2; i++) {
      ReferenceQueue<Object> queue = new ReferenceQueue<>();
      WeakReference<Object> last = new WeakReference<>(new Object(), queue);
      System.gc();
      if (queue.remove(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS)) != last) {
        throw new AssertionError("nothing is collected");
      }
    }
  }

  private void warmUp(Cell cell, Cuda cuda, BooleanSupplier isLate) throws Exception {
    Outcomes unasked = new Outcomes();
    for (int i = 0; i < WARM_UP && (i == 0 || !isLate.getAsBoolean()); i++) {
      Stage stage = new Stage(cuda, driver.theirs(), false);
      unasked.run(cell.operation.prepare().apply(stage));
      stage.close();
    }
  }

  private Runnable prepared(Cell cell, Cuda cuda) {
    return cell.operation.prepare().apply(new Stage(cuda, driver.theirs(), true));
  }

  private static Thread thread(Cell cell, Runnable body, Held group) {
    AtomicReference<Runnable> once = new AtomicReference<>(body);
    return Thread.ofVirtual()
        .name(cell.toString())
        .unstarted(() -> {
          group.join();
          cell.outcomes.run(() -> once.getAndSet(null).run()); // no frame keeps what it uses
          group.leave();
        });
  }

  private void fail(String text) {
    cells.getFirst().outcomes.fail(new AssertionError(text));
  }

  /** Collects until what is live is what is wanted, or for long enough. */
  private Map<String, Integer> collected(Cuda cuda, Map<String, Integer> wanted)
      throws InterruptedException {
    Map<String, Integer> now = Map.of();
    for (int i = 0; i < COLLECTIONS; i++) {
      collect();
      now = Cell.settled(cuda, driver);
      if (now.equals(wanted)) {
        return now;
      }
    }
    return now;
  }
}
