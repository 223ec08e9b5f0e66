package io.cuvette.testkit;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphNodeParams;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;

/**
 * Random programs give the same memory whether they run at once, captured on several streams, as
 * nodes, cloned, embedded or updated: that of a sequential model. Extend it in the tests of a
 * driver.
 */
public abstract class DriverRandomGraphContract {
  private static final int SLOTS = 5;
  private static final int STREAMS = 3;
  private static final int PROGRAMS = 12;
  private static final int MOST_STEPS = 14;

  /** For subclasses. */
  protected DriverRandomGraphContract() {}

  /** What happens to one slot: a fill, a copy of another slot, or a kernel. */
  private record Step(int kind, int target, int source, int value) {
    static Step random(SplittableRandom random) {
      return new Step(
          random.nextInt(3), random.nextInt(SLOTS), random.nextInt(SLOTS), random.nextInt(100));
    }

    /** The same kind of step on the same slots. */
    Step withValue(int other) {
      return new Step(kind, target, source, other);
    }

    private boolean isCopy() {
      return kind == 1 && target != source;
    }

    private boolean isFill() {
      return kind == 0;
    }

    void apply(int[] model) {
      if (isFill()) {
        model[target] = value;
      } else if (isCopy()) {
        model[target] = model[source];
      } else {
        model[target] = 3 * model[target] + value;
      }
    }

    boolean mustFollow(Step earlier) {
      return target == earlier.target
          || (earlier.isCopy() && target == earlier.source)
          || (isCopy() && source == earlier.target);
    }
  }

  /** Slots of memory, and the streams that programs run on. Confined to a test. */
  private static final class Programs implements AutoCloseable {
    private final GraphBench bench;
    private final CudaDriver driver;
    private final long memory;
    private final MemorySegment host;
    private final long[] streams = new long[STREAMS];
    private final long[] events = new long[STREAMS];

    Programs(GraphBench bench) {
      this.bench = bench;
      this.driver = bench.driver;
      this.memory = driver.memory().memAlloc(0, SLOTS * GraphBench.BYTES);
      this.host = driver.memory().memHostAlloc(0, SLOTS * GraphBench.BYTES, 0);
      streams[0] = bench.stream;
      for (int i = 0; i < STREAMS; i++) {
        streams[i] = i == 0 ? bench.stream : driver.streams().streamCreateWithPriority(0, 1, 0);
        events[i] = driver.events().eventCreate(0, 2);
      }
    }

    private long slot(int index) {
      return memory + index * GraphBench.BYTES;
    }

    GraphNodeParams params(Step step) {
      if (step.isFill()) {
        return new GraphNodeParams.Fill(slot(step.target), step.value, 4, GraphBench.COUNT);
      }
      return step.isCopy()
          ? new GraphNodeParams.Copy(slot(step.target), slot(step.source), GraphBench.BYTES)
          : bench.affine(slot(step.target), 3, step.value);
    }

    private void queue(Step step, long stream) {
      switch (params(step)) {
        case GraphNodeParams.Fill fill ->
            driver.transfers().memsetD32Async(0, fill.target(), fill.value(), fill.count(), stream);
        case GraphNodeParams.Copy copy ->
            driver.transfers().memcpyAsync(0, copy.target(), copy.source(), copy.bytes(), stream);
        case GraphNodeParams.Kernel kernel ->
            driver
                .kernels()
                .launchKernel(0, stream, kernel.kernel(), kernel.shape(), kernel.parameters());
        default -> throw new AssertionError(step);
      }
    }

    /** Runs a program on all streams, each step behind those that it must follow. */
    void run(List<Step> program, SplittableRandom random) {
      driver.events().eventRecord(0, events[0], streams[0]);
      for (int i = 1; i < STREAMS; i++) {
        driver.streams().streamWaitEvent(0, streams[i], events[0]);
        driver.events().eventRecord(0, events[i], streams[i]);
      }
      int[] ranOn = new int[program.size()];
      for (int i = 0; i < ranOn.length; i++) {
        ranOn[i] = random.nextInt(STREAMS);
        Set<Integer> awaited = new LinkedHashSet<>();
        for (int earlier = 0; earlier < i; earlier++) {
          if (program.get(i).mustFollow(program.get(earlier))) {
            awaited.add(ranOn[earlier]);
          }
        }
        for (int each : awaited) {
          driver.streams().streamWaitEvent(0, streams[ranOn[i]], events[each]);
        }
        queue(program.get(i), streams[ranOn[i]]);
        driver.events().eventRecord(0, events[ranOn[i]], streams[ranOn[i]]);
      }
      for (int i = 1; i < STREAMS; i++) {
        driver.streams().streamWaitEvent(0, streams[0], events[i]);
      }
    }

    /** The nodes of a program, with the edges that it needs and some more. */
    long nodes(List<Step> program, long seed) {
      SplittableRandom random = new SplittableRandom(seed);
      long graph = bench.graphs.graphCreate();
      List<Long> nodes = new ArrayList<>();
      for (int i = 0; i < program.size(); i++) {
        List<Long> after = new ArrayList<>();
        for (int earlier = 0; earlier < i; earlier++) {
          if (random.nextInt(8) == 0 || program.get(i).mustFollow(program.get(earlier))) {
            after.add(nodes.get(earlier));
          }
        }
        long[] dependencies = after.stream().mapToLong(Long::longValue).toArray();
        nodes.add(bench.add(graph, params(program.get(i)), dependencies));
      }
      return graph;
    }

    /** Sets all slots, runs something some times, and compares. */
    void check(List<Step> program, String how, int times, Runnable once) {
      int[] model = new int[SLOTS];
      for (int i = 0; i < SLOTS; i++) {
        model[i] = i + 1;
        driver.transfers().memsetD32Async(0, slot(i), i + 1, GraphBench.COUNT, bench.stream);
      }
      for (int i = 0; i < times; i++) {
        once.run();
        program.forEach(step -> step.apply(model));
      }
      driver.transfers().memcpyDtoHAsync(0, host, memory, bench.stream);
      bench.sync();
      for (int i = 0; i < SLOTS; i++) {
        int[] found = host.asSlice(i * GraphBench.BYTES, GraphBench.BYTES).toArray(JAVA_INT);
        assertThat(found).as("slot %d, %s: %s", i, how, program).containsOnly(model[i]);
      }
    }

    void checkGraph(List<Step> program, String how, int times, long graph) {
      long executable = bench.instantiate(graph);
      check(program, how, times, () -> bench.launch(executable));
      bench.graphs.graphExecDestroy(executable);
    }

    @Override
    public void close() {
      driver.memory().memFree(0, memory);
      driver.memory().memFreeHost(0, host.address());
      for (int i = 0; i < STREAMS; i++) {
        driver.events().eventDestroy(0, events[i]);
        if (i > 0) {
          driver.streams().streamDestroy(0, streams[i]);
        }
      }
    }
  }

  /**
   * Each program, in each way, gives the memory of the model.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void randomPrograms_giveTheMemoryOfTheModel(CudaDriver driver) {
    try (GraphBench bench = new GraphBench(driver);
        Programs programs = new Programs(bench)) {
      for (int number = 0; number < PROGRAMS; number++) {
        check(bench, programs, new SplittableRandom(number), number);
      }
    }
  }

  private static void check(
      GraphBench bench, Programs programs, SplittableRandom random, long seed) {
    List<Step> program = new ArrayList<>();
    int steps = 1 + random.nextInt(MOST_STEPS);
    for (int i = 0; i < steps; i++) {
      program.add(Step.random(random));
    }
    int times = 1 + random.nextInt(3);
    programs.check(program, "eager", times, () -> programs.run(program, random));
    long captured = bench.capture(() -> programs.run(program, random));
    programs.checkGraph(program, "captured", times, captured);
    long graph = programs.nodes(program, seed);
    programs.checkGraph(program, "nodes", times, graph);
    long clone = bench.graphs.graphClone(graph);
    programs.checkGraph(program, "cloned", times, clone);
    long outer = bench.graphs.graphCreate();
    bench.add(outer, new GraphNodeParams.Child(captured));
    programs.checkGraph(program, "embedded", times, outer);
    List<Step> other = program.stream().map(step -> step.withValue(random.nextInt(100))).toList();
    long changed = programs.nodes(other, seed);
    long executable = bench.instantiate(graph);
    programs.check(program, "before the update", times, () -> bench.launch(executable));
    assertThat(bench.graphs.graphExecUpdate(0, executable, changed).result()).isZero();
    programs.check(other, "updated", times, () -> bench.launch(executable));
    bench.graphs.graphExecDestroy(executable);
    for (long each : new long[] {captured, graph, clone, outer, changed}) {
      bench.graphs.graphDestroy(each);
    }
  }
}
