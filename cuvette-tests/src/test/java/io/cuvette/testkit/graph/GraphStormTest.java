package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphDependency;
import io.cuvette.GraphMemory;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphNode;
import io.cuvette.GraphOptions;
import io.cuvette.GraphPlace;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Graph;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Threads capture, build, instantiate, launch, update and close the same graphs, in any order, with
 * memory and streams that others close meanwhile. Each call does its work or says why not, and no
 * capture becomes invalid.
 */
class GraphStormTest {
  private static final int THREADS = 4;
  private static final int STEPS = 120;
  private static final int BYTES = 4096;

  /** What a call may say in a storm, besides that something is closed or does not fit. */
  private static final Set<CudaStatus> ALLOWED =
      Set.of(
          CudaStatus.GRAPH_EXEC_UPDATE_FAILURE,
          CudaStatus.STREAM_CAPTURE_UNJOINED,
          CudaStatus.INVALID_VALUE,
          CudaStatus.NOT_SUPPORTED);

  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  /** Things of one kind, which threads take and replace. */
  private static final class Shelf<T extends AutoCloseable> {
    private final AtomicReferenceArray<@Nullable T> places;

    Shelf(int size) {
      this.places = new AtomicReferenceArray<>(size);
    }

    T any(SplittableRandom random, Supplier<T> make) {
      int place = random.nextInt(places.length());
      T there = places.get(place);
      if (there != null) {
        return there;
      }
      T made = make.get();
      put(place, made);
      return made;
    }

    void put(SplittableRandom random, @Nullable T next) {
      put(random.nextInt(places.length()), next);
    }

    private void put(int place, @Nullable T next) {
      T before = places.getAndSet(place, next);
      if (before != null) {
        try {
          before.close();
        } catch (RuntimeException e) {
          throw e;
        } catch (Exception e) {
          throw new AssertionError(e);
        }
      }
    }

    void clear() {
      for (int i = 0; i < places.length(); i++) {
        put(i, null);
      }
    }
  }

  /** What all threads share. */
  private static final class Common {
    final Cuda cuda;
    final MemoryPool pool;
    final GraphMemoryResource resource;
    final Shelf<CudaStream> streams = new Shelf<>(3);
    final Shelf<Buffer> buffers = new Shelf<>(6);
    final Shelf<CudaGraph> graphs = new Shelf<>(4);
    final Shelf<CudaGraphExec> executables = new Shelf<>(4);
    final Shelf<GraphDefinition> definitions = new Shelf<>(3);
    final Shelf<GraphMemory> memories = new Shelf<>(2);
    final Shelf<CudaEvent> events = new Shelf<>(2);

    Common(Cuda cuda, MemoryPool pool) {
      this.cuda = cuda;
      this.pool = pool;
      this.resource = new GraphMemoryResource(cuda.device(0));
    }

    CudaStream newStream() {
      return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    }

    void clear() {
      streams.clear();
      buffers.clear();
      definitions.clear();
      graphs.clear();
      executables.clear();
      memories.clear();
      events.clear();
    }
  }

  /** One thread, with its own numbers. */
  private final class Worker implements Runnable {
    private final Common all;
    private final SplittableRandom random;

    Worker(Common all, SplittableRandom random) {
      this.all = all;
      this.random = random;
    }

    @Override
    public void run() {
      for (int i = 0; i < STEPS; i++) {
        tried(this::step);
      }
    }

    private CudaStream stream() {
      return all.streams.any(random, all::newStream);
    }

    /** One that may be captured from its first moment on. */
    private CudaStream exposed() {
      CudaStream made = all.newStream();
      assertThat(made.handle()).isNotZero();
      return made;
    }

    private Buffer buffer() {
      return all.buffers.any(random, () -> all.pool.allocate(BYTES, stream()));
    }

    private CudaGraph graph() {
      return all.graphs.any(random, this::captured);
    }

    private CudaGraphExec executable() {
      return all.executables.any(random, () -> graph().instantiate(options()));
    }

    private GraphDefinition definition() {
      return all.definitions.any(random, () -> new GraphDefinition(all.cuda.device(0)));
    }

    private CudaEvent event() {
      return all.events.any(random, () -> all.cuda.device(0).createEvent());
    }

    private GraphOptions options() {
      return new GraphOptions(random.nextBoolean(), random.nextBoolean());
    }

    private void step() {
      switch (random.nextInt(22)) {
        case 0, 1 -> all.graphs.put(random, captured());
        case 2 -> all.executables.put(random, graph().instantiate(options()));
        case 3, 4, 5, 6 -> executable().launch(stream());
        case 7 -> executable().update(graph());
        case 8 -> executable().upload(stream());
        case 9 -> all.graphs.put(random, graph().copy());
        case 10 -> all.definitions.put(random, null);
        case 11 -> all.executables.put(random, definition().graph().instantiate(options()));
        case 12, 13, 14 -> build(definition());
        case 15 -> change(definition());
        case 16 -> all.buffers.put(random, null);
        case 17 -> buffer().fill((byte) 1, stream());
        case 18 -> all.streams.put(random, null);
        case 19 -> all.memories.put(random, null);
        case 20 -> all.streams.put(random, exposed());
        default -> {
          all.events.put(random, null);
          assertThat(graph().toDot(false)).startsWith("digraph");
        }
      }
    }

    private CudaGraph captured() {
      CaptureMode mode =
          Thread.currentThread().isVirtual()
              ? CaptureMode.RELAXED
              : CaptureMode.values()[random.nextInt(3)];
      GraphMemory memory =
          random.nextBoolean()
              ? all.memories.any(random, all.cuda.device(0)::createGraphMemory)
              : null;
      CudaStream stream = stream();
      return stream.capture(new CaptureOptions(mode, memory), () -> body(stream));
    }

    private void body(CudaStream stream) {
      CudaStream fork = random.nextBoolean() ? all.newStream() : null;
      try (fork) {
        if (fork != null) {
          fork.waitFor(stream);
        }
        for (int i = random.nextInt(1, 6); i > 0; i--) {
          CudaStream in = fork != null && random.nextBoolean() ? fork : stream;
          tried(() -> queue(in));
        }
        if (fork != null) {
          stream.waitFor(fork);
        }
      }
    }

    private void queue(CudaStream stream) {
      switch (random.nextInt(11)) {
        case 0, 1 -> buffer().fill((byte) 2, stream);
        case 2 -> buffer().copyFrom(buffer(), stream);
        case 3, 4 -> {
          try (Buffer inside = all.pool.allocate(BYTES, stream)) {
            inside.fill((byte) 3, stream);
            buffer().copyFrom(inside, stream);
          }
        }
        case 5 -> {
          try (Buffer inside = all.resource.allocate(BYTES, stream)) {
            inside.fill((byte) 4, stream);
          }
        }
        case 6 -> stream.captureCallback(() -> {});
        case 7 -> stream.captureChild(graph());
        case 8 -> executable().launch(stream);
        case 9 -> stream.synchronize();
        default -> stream.record(event());
      }
    }

    private void build(GraphDefinition definition) {
      List<GraphNode> nodes = new ArrayList<>(definition.nodes());
      GraphPlace place =
          nodes.isEmpty()
              ? definition.root()
              : definition.after(nodes.get(random.nextInt(nodes.size())));
      GraphNode _ =
          switch (random.nextInt(7)) {
            case 0 -> place.fill(buffer(), (byte) 5);
            case 1 -> place.copy(buffer(), buffer());
            case 2 -> place.callback(() -> {});
            case 3 -> place.record(event());
            case 4 -> place.waitFor(event());
            case 5 -> place.embed(graph());
            default -> place.empty();
          };
    }

    private void change(GraphDefinition definition) {
      List<GraphNode> nodes = new ArrayList<>(definition.nodes());
      if (nodes.isEmpty()) {
        return;
      }
      GraphNode one = nodes.get(random.nextInt(nodes.size()));
      GraphNode other = nodes.get(random.nextInt(nodes.size()));
      switch (random.nextInt(6)) {
        case 0 -> one.remove();
        case 1 -> one.update().fill(buffer(), (byte) 6);
        case 2 -> one.updateIn(executable()).fill(buffer(), (byte) 7);
        case 3 -> one.setEnabledIn(executable(), random.nextBoolean());
        case 4 -> definition.edges().add(new GraphDependency(one, other));
        default -> definition.edges().removeAll(List.copyOf(definition.edges()));
      }
    }

    private void tried(Runnable step) {
      try {
        step.run();
      } catch (IllegalStateException | IllegalArgumentException e) {
        assertThat(e).hasMessageMatching("(?s).{10,}");
      } catch (CudaException e) {
        if (!ALLOWED.contains(e.status())) {
          failures.add(e);
        }
      } catch (RuntimeException | Error e) {
        failures.add(e);
      }
    }
  }

  @CudaTest(seeds = 8, sanitized = false, tidy = false)
  void everyCallAnswers_andNoCaptureBecomesInvalid(Subject subject, Cuda cuda, MemoryPool pool)
      throws InterruptedException {
    Common all = new Common(cuda, pool);
    SplittableRandom random = new SplittableRandom(subject.seed());
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      Thread.Builder builder = i % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual();
      threads.add(builder.start(new Worker(all, random.split())));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    cuda.device(0).synchronize();
    all.clear();
    assertThat(failures).isEmpty();
    all.resource.trim();
    try (CudaStream stream = all.newStream()) {
      Graph.awaitGone(pool, stream);
    }
    pool.assertConsistent();
  }
}
