package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.GraphMemory;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Work is captured, all buffers are closed, every pool's cached blocks go round and are written to,
 * and the graph runs 1,000 times: what it computes is what a model computes, and what others have
 * is as it was. {@code -Dcuvette.seeds=10000} runs as many programs on the simulated device.
 */
class GraphsOwnMemoryTest {
  private static final int RUNS = 1_000;
  private static final int PROGRAMS_ON_A_GPU = 40;
  private static final int MOST_ROUNDS = 4_000;
  private static final int LOOKS = 5_000;

  /** What takes part in one test. Confined to it. */
  private static final class Bench implements AutoCloseable {
    final Cuda cuda;
    final SplittableRandom random;
    final CudaStream[] captured;
    final CudaStream[] all;
    final MemoryPool pool;
    final AsyncMemoryPool ordered;
    final PinnedMemoryPool pinned;
    final CudaModule module;
    final CudaKernel kernel;
    final List<Function<CudaStream, Buffer>> kinds;

    Bench(Cuda cuda, SplittableRandom random, CudaStream... streams) {
      this.cuda = cuda;
      this.random = random;
      this.all = streams;
      this.captured = Arrays.copyOf(streams, 2);
      this.pool = new MemoryPool(cuda);
      this.ordered = new AsyncMemoryPool(cuda);
      this.pinned = new PinnedMemoryPool(cuda);
      this.module = TestKernels.launches(cuda);
      this.kernel = module.kernel("countBytes");
      this.kinds =
          List.of(
              stream -> pool.allocate(ReplayedProgram.BYTES, stream),
              stream -> ordered.allocate(ReplayedProgram.BYTES, stream),
              stream -> MemoryResource.direct().allocate(ReplayedProgram.BYTES, stream),
              stream -> MemoryResource.managed().allocate(ReplayedProgram.BYTES, stream),
              _ -> pinned.allocate(ReplayedProgram.BYTES));
    }

    CudaStream anyStream() {
      return all[random.nextInt(all.length)];
    }

    void await() {
      for (CudaStream stream : all) {
        stream.synchronize();
      }
    }

    /** Waits until no graph has memory any more, and nothing else either: all can be released. */
    void awaitNothingLeft() {
      Graph.awaitGone(pool, captured[0]);
      for (int i = 0; i < LOOKS && !isNothingLeft(); i++) {
        LockSupport.parkNanos(1_000_000);
        cuda.leaksFound();
      }
      assertThat(isNothingLeft())
          .as("%s, pinned %s, ordered %d B", pool.stats(), pinned.stats(), ordered.usedBytes())
          .isTrue();
      assertThat(pool.stats().releasableBytes()).isEqualTo(pool.stats().heldBytes());
      pool.freeAllBlocks();
      assertThat(pool.stats().heldBytes()).isZero();
      pinned.freeAllBlocks();
      assertThat(pinned.totalBytes()).isZero();
    }

    private boolean isNothingLeft() {
      return pool.usedBytes() == 0
          && ordered.usedBytes() == 0
          && pinned.usedBytes() == 0
          && pinned.stats().pendingBytes() == 0;
    }

    @Override
    public void close() {
      module.close();
      pinned.close();
      ordered.close();
      pool.close();
    }
  }

  /** A program that was captured, and the model of it. Confined to the test. */
  private static final class Replayed implements AutoCloseable {
    private final Bench bench;
    private final ReplayedProgram program;
    private final CaptureOptions options;
    private final int[] kinds = new int[ReplayedProgram.SLOTS];
    private final Buffer result;
    private final CudaGraphExec executable;
    private byte[][] model = new byte[0][];

    Replayed(Bench bench, @Nullable GraphMemory memory) {
      this.bench = bench;
      this.program = ReplayedProgram.random(bench.random);
      this.options = CaptureOptions.DEFAULTS.withMemory(memory);
      this.result = bench.pool.allocate((long) kinds.length * ReplayedProgram.BYTES, bench.all[0]);
      for (int i = 0; i < kinds.length; i++) {
        kinds[i] = bench.random.nextInt(bench.kinds.size());
      }
      CudaGraph graph = capture();
      if (bench.random.nextBoolean()) {
        try (CudaGraph original = graph) {
          graph = original.copy();
        }
      }
      try (CudaGraph taken = graph) {
        this.executable = taken.instantiate();
      }
    }

    /** Captures the program with new memory, which is closed inside the capture or after it. */
    private CudaGraph capture() {
      Buffer[] slots = new Buffer[kinds.length];
      model = new byte[slots.length][];
      for (int i = 0; i < slots.length; i++) {
        slots[i] = bench.kinds.get(kinds[i]).apply(bench.captured[0]);
        model[i] = Bytes.random(bench.random.nextLong(), ReplayedProgram.BYTES);
        try (var _ = bench.captured[0].use()) {
          Bytes.put(slots[i], model[i]);
        }
      }
      boolean closedInside = bench.random.nextBoolean();
      try {
        return bench.captured[0].capture(
            options,
            () -> {
              program.queue(
                  slots, result, bench.captured, bench.pool, bench.kernel, CudaStream::waitFor);
              if (closedInside) {
                Arrays.asList(slots).forEach(Buffer::close);
              }
            });
      } finally {
        Arrays.asList(slots).forEach(Buffer::close);
      }
    }

    void update() {
      try (CudaGraph next = capture()) {
        executable.update(next);
      }
    }

    void launch() {
      executable.launch(bench.anyStream());
      program.run(model);
    }

    void check() {
      bench.await();
      byte[] content = Bytes.of(result);
      for (int i = 0; i < model.length; i++) {
        byte[] slot =
            Arrays.copyOfRange(content, i * ReplayedProgram.BYTES, (i + 1) * ReplayedProgram.BYTES);
        assertThat(slot).as("slot %d of %s", i, program).isEqualTo(model[i]);
      }
    }

    @Override
    public void close() {
      executable.close();
      result.close();
    }
  }

  /** What others have taken and written: every block that a pool had cached is among it. */
  private record Others(List<Buffer> taken, int value) {
    static Others take(Bench bench, boolean all) {
      List<Buffer> taken = new ArrayList<>();
      int value = bench.random.nextInt(1, 128);
      for (Function<CudaStream, Buffer> kind : bench.kinds) {
        for (int i = 0; i < 2 * ReplayedProgram.SLOTS; i++) {
          taken.add(kind.apply(bench.anyStream()));
        }
      }
      long before = bench.pool.stats().growths();
      for (int i = 0; all && bench.pool.stats().growths() == before; i++) {
        assertThat(i).as("%s", bench.pool.stats()).isLessThan(MOST_ROUNDS);
        taken.add(bench.kinds.getFirst().apply(bench.anyStream()));
      }
      for (Buffer each : taken) {
        CudaStream stream = each.stream();
        each.fill((byte) value, stream == null ? bench.anyStream() : stream);
      }
      return new Others(taken, value);
    }

    void checkAndClose(Bench bench) {
      bench.await();
      for (Buffer each : taken) {
        assertThat(Bytes.areAll(each, value)).as("%s is not what was written", each).isTrue();
        each.close();
      }
    }
  }

  private static void run(Bench bench) {
    boolean shared = bench.random.nextBoolean();
    try (GraphMemory memory = shared ? bench.cuda.device(0).createGraphMemory() : null) {
      List<Replayed> programs = new ArrayList<>();
      try {
        for (int i = bench.random.nextInt(1, 3); i > 0; i--) {
          programs.add(new Replayed(bench, memory));
        }
        replay(bench, programs);
      } finally {
        programs.forEach(Replayed::close);
      }
    }
    bench.awaitNothingLeft();
  }

  private static void replay(Bench bench, List<Replayed> programs) {
    if (programs.stream().anyMatch(each -> each.program.takesMemory())) {
      assertThat(bench.pool.stats().graphBytes()).isPositive();
    }
    Others others = Others.take(bench, true);
    int updated = bench.random.nextInt(2 * RUNS);
    int churned = bench.random.nextInt(1, RUNS);
    for (int run = 1; run <= RUNS; run++) {
      programs.forEach(Replayed::launch);
      if (run == churned) {
        others.checkAndClose(bench);
        others = Others.take(bench, false);
      }
      if (run == 1 || run == RUNS || run == churned || bench.random.nextInt(RUNS / 8) == 0) {
        programs.forEach(Replayed::check);
      }
      if (run == updated) {
        programs.forEach(Replayed::update);
      }
    }
    others.checkAndClose(bench);
  }

  private static void runAll(Subject subject, Cuda cuda, CudaStream... streams) {
    for (int i = subject.isSimulated() ? 1 : PROGRAMS_ON_A_GPU; i > 0; i--) {
      SplittableRandom random = new SplittableRandom(31 * subject.seed() + i);
      try (Bench bench = new Bench(cuda, random, streams)) {
        run(bench);
      }
    }
  }

  @CudaTest(seeds = 24, sanitized = false)
  void graphWhoseBuffersAreClosed_computesTheSame_whateverOthersDo(
      Subject subject,
      Cuda cuda,
      @NonBlocking CudaStream first,
      @NonBlocking CudaStream second,
      @NonBlocking CudaStream third) {
    runAll(subject, cuda, first, second, third);
  }

  @CudaTest(seeds = 8, simulatedOnly = true)
  void theSanitizer_findsNothingInThat(
      Subject subject,
      Cuda cuda,
      @NonBlocking CudaStream first,
      @NonBlocking CudaStream second,
      @NonBlocking CudaStream third) {
    runAll(subject, cuda, first, second, third);
  }
}
