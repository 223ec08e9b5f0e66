package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * The grid of RMM's benchmark of random allocations. The score is the time of all {@code 2 × count}
 * allocations and frees of a plan; the pool is kept from one to the next.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 2, time = 1)
@Measurement(iterations = 3, time = 1)
public class RandomAllocationsBenchmark {
  private static final long SEED = 1;

  /** Made by JMH. */
  public RandomAllocationsBenchmark() {}

  /** A place of the grid with its plan. */
  @State(Scope.Benchmark)
  public static class Grid {
    /** At most so many blocks are live. */
    @Param({"1000", "10000", "100000"})
    public int count;

    /** The largest block in MiB. */
    @Param({"1", "4", "64", "256", "1024", "4096"})
    public int maxMiB;

    private RandomAllocations plan;
    private @Nullable Buffer[] live;

    /** Made by JMH. */
    public Grid() {}

    /** Makes the plan. */
    @Setup(Level.Trial)
    public void plan() {
      plan = new RandomAllocations(count, maxMiB, SEED);
      live = new Buffer[plan.peakBlocks()];
    }
  }

  /** All steps of the plan, and then the frees of what is live at its end. */
  @Benchmark
  public void randomAllocations(PoolState state, Grid grid) {
    RandomAllocations plan = grid.plan;
    @Nullable Buffer[] live = grid.live;
    int blocks = 0;
    for (int i = 0; i < plan.length(); i++) {
      long step = plan.step(i);
      if (step >= 0) {
        live[blocks++] = state.pool.allocate(step, state.stream);
      } else {
        int victim = (int) (-1 - step);
        Buffer buffer = live[victim];
        live[victim] = live[--blocks];
        live[blocks] = null;
        if (buffer != null) {
          buffer.close();
        }
      }
    }
    PoolWork.closeAll(live);
  }
}
