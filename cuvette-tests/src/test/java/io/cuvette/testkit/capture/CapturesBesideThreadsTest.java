package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.AtOnce;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.junit.jupiter.api.Timeout;

/**
 * Threads that share a stream take blocks of mixed sizes while graphs are captured in it, launched
 * and closed: what a graph uses is nobody else's until it is gone, and all comes back.
 */
@Timeout(60)
class CapturesBesideThreadsTest {
  private static final int ROUNDS = 2;
  private static final int THREADS = 3;
  private static final int STEPS = 150;
  private static final int CAPTURES = 15;
  private static final int STREAMS = 2;
  private static final long MOST_BYTES = 1 << 20;

  private final AtOnce threads = new AtOnce();

  /** Blocks in use and those of graphs, none of which may share a byte. */
  private static final class Book {
    private final TreeMap<Long, Long> live = new TreeMap<>();
    private final Map<Integer, TreeMap<Long, Long>> ofGraphs = new HashMap<>();

    /** A block that is of no graph, but for one that was captured in its stream meanwhile. */
    synchronized void add(Buffer buffer, List<Integer> captured) {
      add(buffer);
      ofGraphs.forEach((graph, blocks) ->
          assertThat(!captured.contains(graph) && overlaps(blocks, buffer))
              .as("%s is of graph %d, captured meanwhile: %s", buffer, graph, captured)
              .isFalse());
    }

    synchronized void addOfGraph(Buffer buffer, int graph) {
      add(buffer, List.of(graph));
      var _ =
          ofGraphs
              .computeIfAbsent(graph, _ -> new TreeMap<>())
              .merge(buffer.address(), end(buffer), Math::max);
    }

    private void add(Buffer buffer) {
      assertThat(overlaps(live, buffer)).as("%s overlaps another", buffer).isFalse();
      live.put(buffer.address(), end(buffer));
    }

    private static long end(Buffer buffer) {
      return buffer.address() + buffer.blockBytes();
    }

    private static boolean overlaps(TreeMap<Long, Long> blocks, Buffer buffer) {
      Map.Entry<Long, Long> before = blocks.lowerEntry(end(buffer));
      return before != null && before.getValue() > buffer.address();
    }

    synchronized void close(Buffer buffer) {
      assertThat(live.remove(buffer.address())).isNotNull();
      buffer.close();
    }

    /** From here on what the graph has may come back. */
    synchronized void ends(int graph) {
      ofGraphs.remove(graph);
    }
  }

  /** One stream, and which graphs are being captured in it: one after the other. */
  private static final class Captured {
    final CudaStream stream;
    private volatile int begun = -1;
    private volatile int ended = -1;

    Captured(CudaStream stream) {
      this.stream = stream;
    }

    void begins(int graph) {
      begun = graph;
    }

    void ends(int graph) {
      ended = graph;
    }

    /** What may have been captured since then. */
    List<Integer> since(int before) {
      List<Integer> all = new ArrayList<>();
      for (int graph = Math.max(0, before + 1); graph <= begun; graph++) {
        all.add(graph);
      }
      return all;
    }
  }

  @CudaTest
  void memoryPool(Subject subject, Cuda cuda) throws InterruptedException {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      run(cuda, pool, pool::stats, subject.seed());
      pool.assertConsistent();
    }
  }

  @CudaTest
  void elasticMemoryPool(Subject subject, Cuda cuda) throws InterruptedException {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      run(cuda, pool, pool::stats, subject.seed());
      pool.assertConsistent();
    }
  }

  /** Memory of the driver that is taken just as a capture begins is no node of its graph. */
  @CudaTest
  void memoryOfTheDriver(Subject subject, Cuda cuda) throws InterruptedException {
    SplittableRandom random = new SplittableRandom(subject.seed());
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda);
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      for (MemoryResource resource : List.of(pool, MemoryResource.async())) {
        SplittableRandom own = random.split();
        AtomicBoolean isOver = new AtomicBoolean();
        threads.run(
            THREADS,
            thread -> {
              if (thread == 0) {
                captureOften(resource, stream, own);
                isOver.set(true);
              }
              while (!isOver.get()) {
                fillOne(resource, stream, MOST_BYTES / THREADS * thread);
              }
            });
        stream.synchronize();
      }
    }
  }

  private static void captureOften(
      MemoryResource resource, CudaStream stream, SplittableRandom random) {
    for (int i = 0; i < 10 * CAPTURES; i++) {
      CaptureOptions relaxed = CaptureOptions.DEFAULTS.withMode(CaptureMode.RELAXED);
      stream.beginCapture(relaxed);
      fillOne(resource, stream, bytes(random));
      try (CudaGraph made = stream.endCapture();
          CudaGraphExec exec = made.instantiate()) {
        for (int k = random.nextInt(3); k > 0; k--) {
          exec.launch(stream);
        }
      }
    }
  }

  private static void fillOne(MemoryResource resource, CudaStream stream, long bytes) {
    try (Buffer buffer = resource.allocate(bytes, stream)) {
      buffer.fill((byte) 1, stream);
    }
  }

  private void run(Cuda cuda, MemoryResource pool, Supplier<PoolStats> stats, long seed)
      throws InterruptedException {
    SplittableRandom random = new SplittableRandom(seed);
    for (int round = 0; round < ROUNDS; round++) {
      Book book = new Book();
      List<Captured> streams = new ArrayList<>();
      for (int i = 0; i < STREAMS; i++) {
        streams.add(new Captured(cuda.device(0).createStream(StreamOptions.NON_BLOCKING)));
      }
      List<SplittableRandom> randoms = new ArrayList<>();
      for (int i = 0; i < THREADS + STREAMS; i++) {
        randoms.add(random.split());
      }
      threads.run(
          THREADS + STREAMS,
          thread -> {
            SplittableRandom own = randoms.get(thread);
            if (thread < STREAMS) {
              capture(pool, streams.get(thread), thread * CAPTURES, book, own);
            } else {
              allocate(pool, streams, book, own);
            }
          });
      cuda.device(0).synchronize();
      PoolStats rest = stats.get();
      assertThat(rest.usedBytes() + rest.pendingBytes() + rest.graphBytes())
          .as("%s", rest)
          .isZero();
      streams.forEach(each -> each.stream.close());
    }
  }

  private static void allocate(
      MemoryResource pool, List<Captured> streams, Book book, SplittableRandom random) {
    List<Buffer> own = new ArrayList<>();
    for (int i = 0; i < STEPS; i++) {
      if (random.nextInt(5) < 3) {
        Captured of = streams.get(random.nextInt(STREAMS));
        int before = of.ended;
        Buffer buffer = pool.allocate(bytes(random), of.stream);
        book.add(buffer, of.since(before));
        own.add(buffer);
      } else if (!own.isEmpty()) {
        book.close(own.remove(random.nextInt(own.size())));
      }
    }
    own.forEach(book::close);
  }

  /** So many graphs one after the other, some of which live on during the next. */
  private static void capture(
      MemoryResource pool, Captured in, int first, Book book, SplittableRandom random) {
    Map<Integer, CudaGraphExec> graphs = new TreeMap<>();
    for (int graph = first; graph < first + CAPTURES; graph++) {
      graphs.put(graph, captured(pool, in, graph, book, random));
      for (CudaGraphExec exec : graphs.values()) {
        exec.launch(in.stream);
      }
      while (graphs.size() > random.nextInt(4)) {
        end(graphs, random.nextInt(graphs.size()), book);
      }
    }
    while (!graphs.isEmpty()) {
      end(graphs, 0, book);
    }
  }

  private static void end(Map<Integer, CudaGraphExec> graphs, int index, Book book) {
    int graph = new ArrayList<>(graphs.keySet()).get(index);
    book.ends(graph);
    graphs.remove(graph).close();
  }

  private static CudaGraphExec captured(
      MemoryResource pool, Captured in, int graph, Book book, SplittableRandom random) {
    List<Buffer> kept = new ArrayList<>();
    in.begins(graph);
    in.stream.beginCapture(CaptureOptions.DEFAULTS);
    for (int i = random.nextInt(8); i >= 0; i--) {
      Buffer buffer = pool.allocate(bytes(random), in.stream);
      book.addOfGraph(buffer, graph);
      buffer.fill((byte) i, in.stream);
      kept.add(buffer);
      if (random.nextBoolean()) {
        book.close(kept.removeFirst());
      }
    }
    try (CudaGraph made = in.stream.endCapture()) {
      in.ends(graph);
      CudaGraphExec exec = made.instantiate();
      kept.forEach(book::close);
      return exec;
    }
  }

  private static long bytes(SplittableRandom random) {
    return 1 + random.nextLong(1L << random.nextInt(9, 21)) % MOST_BYTES;
  }
}
