package io.cuvette.testkit.races;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Boxes, rows and batches of short-lived memory by many threads, each beside one that ends anything
 * they use, or interrupts them: a copy is made, or is one error that names what was closed; nothing
 * is left.
 */
@Timeout(120)
class TransferRacesTest {
  private static final int THREADS = 8;
  private static final int ROUNDS = 12;

  /** Of copies through chunks, with several parts and a part that is not full. */
  private static final int LARGE = (4 << 20) + 3 * 1000;

  private static final int SMALL = 6000;

  /** What says that it is closed. */
  private static final List<String> NAMES =
      List.of("buffer", "slice", "stream", "Pool", "arena of", "Cuda is closed");

  /** What is ended beside a copy. */
  private enum End {
    NOTHING,
    BUFFER,
    OTHER,
    PINNED,
    STREAM,
    POOL,
    ARENA,
    CUDA,
    INTERRUPT
  }

  static List<Integer> seeds() {
    String[] range = System.getProperty("cuvette.seeds", "8").split("-", 2);
    int last = Integer.parseInt(range[range.length - 1]);
    int first = range.length == 1 ? 1 : Integer.parseInt(range[0]);
    List<Integer> seeds = new ArrayList<>();
    for (int seed = first; seed <= last; seed++) {
      seeds.add(seed);
    }
    return seeds;
  }

  /** What one round copies between, and what can be ended. Of the thread that copies. */
  private static final class Used {
    final int bytes;
    final CudaStream stream;
    final MemoryPool pool;
    final Buffer buffer;
    final Buffer other;
    final PinnedBuffer pinned;
    final Arena arena = Arena.ofShared();
    final MemorySegment pageable;
    final List<AutoCloseable> made = new ArrayList<>();

    Used(Cuda cuda, int bytes) {
      this.bytes = bytes;
      stream = made(cuda.device(0).createStream());
      pool = made(new MemoryPool(cuda));
      buffer = made(pool.allocate(bytes, stream));
      other = made(cuda.allocate(bytes, stream));
      pinned = made(cuda.allocatePinned(bytes));
      pageable = arena.allocate(bytes);
    }

    private <T extends AutoCloseable> T made(T thing) {
      made.add(thing);
      return thing;
    }

    void close() throws Exception {
      for (AutoCloseable each : made.reversed()) {
        each.close();
      }
      closeArena();
    }

    /** Refused while a call uses it. */
    boolean closeArena() {
      try {
        arena.close();
      } catch (IllegalStateException e) {
        return !arena.scope().isAlive();
      }
      return true;
    }
  }

  private static List<MemorySegment> rows(MemorySegment memory) {
    long third = memory.byteSize() / 3;
    return List.of(memory.asSlice(0, third), memory.asSlice(third, 1), memory.asSlice(third + 1));
  }

  private static List<Buffer> halves(Buffer buffer) {
    long half = buffer.byteSize() / 2;
    return List.of(buffer.slice(0, half), buffer.slice(half));
  }

  /** A copy with a completion, or one that is made when it returns. */
  private static CompletableFuture<Void> copy(Used all, Random random) {
    CompletableFuture<Void> done = CompletableFuture.completedFuture(null);
    CopyBox box =
        CopyBox.of(all.bytes / 6, 3).withSource(0, all.bytes / 3).withTarget(0, all.bytes / 4);
    MemorySegment host = random.nextBoolean() ? all.pageable : all.pinned.segment();
    switch (random.nextInt(16)) {
      case 0 -> all.buffer.copyFrom(all.other, box, all.stream);
      case 1 -> all.buffer.copyFrom(host, box);
      case 2 -> all.buffer.copyTo(host, box);
      case 3 -> all.pinned.copyFrom(all.pageable, box);
      case 4 -> all.buffer.gatherFrom(rows(host));
      case 5 -> all.buffer.scatterTo(rows(host));
      case 6 -> all.buffer.gatherFrom(List.of(MemorySegment.ofArray(new byte[all.bytes])));
      case 7 -> CopyBatch.of(halves(all.buffer), halves(all.other)).copy();
      case 8 -> done = all.buffer.copyFromAsync(all.other, box, all.stream);
      case 9 -> done = all.buffer.copyFromAsync(host, box, all.stream);
      case 10 -> done = all.buffer.copyToAsync(host, box, all.stream);
      case 11 -> done = all.buffer.gatherFromAsync(rows(host), all.stream);
      case 12 -> done = all.other.scatterToAsync(rows(host), all.stream);
      case 13 -> done = CopyBatch.of(halves(all.other), halves(all.pinned)).copyAsync(all.stream);
      case 14 -> done = all.buffer.copyFromAsync(host, all.stream);
      default -> all.buffer.copyTo(host);
    }
    return done;
  }

  private static void end(End what, Used all, Cuda cuda, Thread copying) throws Exception {
    switch (what) {
      case NOTHING -> {}
      case BUFFER -> all.buffer.close();
      case OTHER -> all.other.close();
      case PINNED -> all.pinned.close();
      case STREAM -> all.stream.close();
      case POOL -> all.pool.close();
      case ARENA -> {
        boolean _ = all.closeArena();
      }
      case CUDA -> cuda.close();
      case INTERRUPT -> copying.interrupt();
    }
  }

  /** Copies are made, end with the thread, or say what was closed, by a name and not the JVM's. */
  private static void check(Throwable e, End end) {
    if (e instanceof CancellationException) {
      // The JVM interrupts a thread in whose access to an arena it closes that.
      assertThat(end).as("%s", e).isIn(End.INTERRUPT, End.ARENA, End.PINNED, End.CUDA);
      assertThat(e).hasMessageContaining("the thread is interrupted; copy of");
      return;
    }
    String text = String.valueOf(e.getMessage());
    if (e.getClass() != IllegalStateException.class
        || !text.contains("closed")
        || NAMES.stream().noneMatch(text::contains)) {
      throw new AssertionError("beside the end of " + end, e);
    }
  }

  private static void round(Cuda cuda, Random random, End end, ExecutorService threads)
      throws Exception {
    Used all = new Used(cuda, random.nextInt(4) == 0 ? LARGE : SMALL);
    try {
      race(all, cuda, random, end, threads);
    } finally {
      all.close();
    }
  }

  private static void race(Used all, Cuda cuda, Random random, End end, ExecutorService threads)
      throws Exception {
    Thread copying = Thread.currentThread();
    int spins = random.nextInt(all.bytes == LARGE ? 40_000 : 4000);
    AtomicInteger go = new AtomicInteger();
    Future<?> ended =
        threads.submit(() -> {
          while (go.get() == 0) {
            Thread.onSpinWait();
          }
          for (int i = 0; i < spins; i++) {
            Thread.onSpinWait();
          }
          end(end, all, cuda, copying);
          return null;
        });
    CompletableFuture<Void> done = CompletableFuture.completedFuture(null);
    go.set(1);
    try {
      done = copy(all, random);
    } catch (IllegalStateException e) {
      check(e, end);
    }
    boolean _ = Thread.interrupted();
    get(ended);
    boolean _ = Thread.interrupted();
    try {
      done.orTimeout(60, TimeUnit.SECONDS).join();
    } catch (CompletionException e) {
      check(e.getCause(), end);
    }
  }

  /** An interrupt that is still on its way is not for this. */
  private static void get(Future<?> ended) throws Exception {
    while (true) {
      try {
        ended.get(60, TimeUnit.SECONDS);
        return;
      } catch (InterruptedException e) {
        assertThat(e).as("looks again").isNotNull();
      }
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void everyCopyBesideEveryEnd_isMadeOrNamesWhatWasClosed(int seed) throws Exception {
    try (CudaDriver simulator = Matrix.openDriver("sim:devices=1,seed=" + seed)) {
      CountedDriver driver = new CountedDriver(simulator);
      try (Cuda cuda = Cell.open(driver);
          ExecutorService threads = Executors.newCachedThreadPool()) {
        Map<String, Integer> before = Cell.settled(cuda, driver);
        run(
            seed,
            threads,
            random -> {
              End[] ends = End.values();
              End end = ends[random.nextInt(ends.length)];
              round(cuda, random, end == End.CUDA ? End.NOTHING : end, threads);
            });
        assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
        Map<String, Integer> after = Cell.settled(cuda, driver);
        assertThat(Cell.grew(before, after)).as("%s, before %s", after, before).isFalse();
      }
      assertThat(driver.live()).isEmpty();
      assertThat(driver.misused()).isEmpty();
    }
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void everyCopyBesideTheEndOfItsCuda_isMadeOrNamesWhatWasClosed(int seed) throws Exception {
    try (CudaDriver simulator = Matrix.openDriver("sim:devices=1,seed=" + seed)) {
      CountedDriver driver = new CountedDriver(simulator);
      try (ExecutorService threads = Executors.newCachedThreadPool()) {
        run(
            seed,
            threads,
            random -> {
              try (Cuda cuda = Cell.open(driver)) {
                round(cuda, random, End.CUDA, threads);
              }
            });
      }
      assertThat(driver.live()).isEmpty();
      assertThat(driver.misused()).isEmpty();
    }
  }

  /** What a thread does in a round. */
  private interface Round {
    void run(Random random) throws Exception;
  }

  private static void run(int seed, ExecutorService threads, Round round) throws Exception {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    List<Future<?>> all = new ArrayList<>();
    for (int thread = 0; thread < THREADS; thread++) {
      Random random = new Random(100L * seed + thread);
      all.add(
          threads.submit(() -> {
            for (int i = 0; i < ROUNDS && failure.get() == null; i++) {
              try {
                round.run(random);
              } catch (Throwable e) { // the first is reported
                failure.compareAndSet(null, e);
              }
            }
          }));
    }
    for (Future<?> each : all) {
      each.get(100, TimeUnit.SECONDS);
    }
    if (failure.get() != null) {
      throw new AssertionError("seed=" + seed, failure.get());
    }
  }
}
