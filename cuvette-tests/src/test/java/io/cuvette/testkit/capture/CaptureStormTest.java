package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Graph;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Graphs are captured in every mode, kept, launched and dropped in any order, while other threads
 * do everything else with the same pool.
 */
class CaptureStormTest {
  private static final int GRAPHS = 60;
  private static final int KEPT = 4;
  private static final int WORKERS = 3;
  private static final int STEPS = 400;
  private static final int MOST_BYTES = 1 << 20;

  /** The blocks of graphs that exist, by address. */
  private final ConcurrentSkipListMap<Long, Buffer> captured = new ConcurrentSkipListMap<>();

  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  private record Kept(Graph graph, List<Buffer> blocks) {}

  @CudaTest
  void noCaptureBecomesInvalid_andNoBlockOfAGraphIsHandedOut(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) throws Exception {
    List<Thread> workers = new ArrayList<>();
    for (int i = 0; i < WORKERS; i++) {
      Random random = new Random(i);
      Thread.Builder builder = i == 0 ? Thread.ofVirtual() : Thread.ofPlatform();
      workers.add(builder.start(() -> tried(() -> work(cuda, pool, random))));
    }
    tried(() -> capture(pool, stream));
    for (Thread worker : workers) {
      worker.join();
    }
    failures.forEach(Throwable::printStackTrace);
    assertThat(failures).isEmpty();
    Graph.awaitGone(pool, stream);
    assertThat(pool.stats().usedBytes()).isZero();
    pool.assertConsistent();
  }

  private void tried(Runnable body) {
    try {
      body.run();
    } catch (RuntimeException | Error e) {
      failures.add(e);
    }
  }

  private void capture(MemoryPool pool, CudaStream stream) {
    Random random = new Random(99);
    ArrayDeque<Kept> kept = new ArrayDeque<>();
    for (int i = 0; i < GRAPHS; i++) {
      List<Buffer> blocks = new ArrayList<>();
      int mode = Graph.MODES[random.nextInt(Graph.MODES.length)];
      Graph graph = Graph.of(stream, mode, () -> fill(pool, stream, random, blocks));
      kept.add(new Kept(graph, blocks));
      graph.launch(stream);
      if (kept.size() > KEPT) {
        drop(kept.remove(), stream);
      }
    }
    kept.forEach(each -> drop(each, stream));
  }

  private void fill(MemoryPool pool, CudaStream stream, Random random, List<Buffer> blocks) {
    for (int i = 0; i < 3; i++) {
      Buffer block = pool.allocate(1 + random.nextInt(MOST_BYTES), stream);
      check(block, blocks);
      captured.merge(
          block.address(), block, (a, b) -> a.byteSize() > b.byteSize() ? a : b); // used again
      blocks.add(block);
      block.fill((byte) i, stream);
      if (random.nextBoolean()) {
        block.close();
      }
    }
    blocks.forEach(Buffer::close);
  }

  private void drop(Kept one, CudaStream stream) {
    stream.synchronize();
    one.blocks.forEach(block -> captured.remove(block.address()));
    one.graph.close();
  }

  private void work(Cuda cuda, MemoryPool pool, Random random) {
    for (int i = 0; i < STEPS; i++) {
      try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
          Scope _ = stream.use();
          Buffer one = pool.allocate(1 + random.nextInt(MOST_BYTES));
          Buffer other = pool.allocate(one.byteSize(), stream)) {
        check(one, List.of());
        check(other, List.of());
        step(pool, stream, one, other, random);
      }
    }
  }

  private static void step(
      MemoryPool pool, CudaStream stream, Buffer one, Buffer other, Random random) {
    switch (random.nextInt(6)) {
      case 0 -> one.copyFrom(other);
      case 1 -> one.copyFrom(other, stream);
      case 2 -> stream.addCallback(() -> {}).join();
      case 3 -> pool.freeAllBlocks();
      case 4 -> stream.device().synchronize();
      default -> one.fill((byte) 1, stream);
    }
  }

  /** No other graph that exists has bytes of a block that was handed out. */
  private void check(Buffer given, List<Buffer> own) {
    long start = given.address();
    long end = start + given.byteSize();
    Map.Entry<Long, Buffer> below = captured.lowerEntry(end);
    if (below != null
        && below.getKey() + below.getValue().byteSize() > start
        && !own.contains(below.getValue())) {
      throw new AssertionError(given + " was handed out, of which a graph has " + below.getValue());
    }
  }
}
