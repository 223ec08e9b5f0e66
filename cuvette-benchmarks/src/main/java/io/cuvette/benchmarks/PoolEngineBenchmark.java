package io.cuvette.benchmarks;

import io.cuvette.internal.index.BlockArena;
import java.util.concurrent.TimeUnit;
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
 * The pools' engine alone, in one thread: no lock, no buffer, no device. The work is that of {@link
 * PoolBenchmark} and {@link RandomAllocationsBenchmark}, so the difference is what the pool adds.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class PoolEngineBenchmark {

  /** Made by JMH. */
  public PoolEngineBenchmark() {}

  /** An arena that adopts a chunk of the size asked for whenever nothing fits. */
  @State(Scope.Thread)
  public static class Engine {
    private final BlockArena arena = new BlockArena();
    private long nextAddress = 1L << 40;

    /** Made by JMH. */
    public Engine() {}

    int allocate(long requestedBytes) {
      long bytes = BlockArena.roundUp(requestedBytes);
      int block = arena.take(bytes);
      if (block == BlockArena.NONE) {
        block = arena.adopt(nextAddress, bytes, 0);
        nextAddress += bytes;
      }
      return block;
    }

    void free(int block) {
      arena.give(block);
    }
  }

  /** The sizes of {@link #sameSize}. */
  @State(Scope.Benchmark)
  public static class Sizes {
    /** Bytes of a block. */
    @Param({"512", "1048576"})
    public long bytes;

    /** Made by JMH. */
    public Sizes() {}
  }

  /** The blocks of {@link #randomLive}. */
  @State(Scope.Thread)
  public static class LiveSet {
    // Its own: JMH makes another one for the benchmark's argument than for that of a setup.
    private final Engine engine = new Engine();
    private final RandomWork work = new RandomWork();
    private final int[] live = new int[RandomWork.SLOTS];
    private int step;

    /** Made by JMH. */
    public LiveSet() {}

    /** Fills every slot. */
    @Setup(Level.Trial)
    public void fill() {
      for (int slot = 0; slot < live.length; slot++) {
        live[slot] = engine.allocate(work.bytes(slot));
      }
    }
  }

  /** A place of the grid with its plan. */
  @State(Scope.Thread)
  public static class Grid {
    /** At most so many blocks are live. */
    @Param({"1000", "10000", "100000"})
    public int count;

    /** The largest block in MiB. */
    @Param({"1", "4", "64", "256", "1024", "4096"})
    public int maxMiB;

    private RandomAllocations plan;
    private int[] live;

    /** Made by JMH. */
    public Grid() {}

    /** Makes the plan. */
    @Setup(Level.Trial)
    public void plan() {
      plan = new RandomAllocations(count, maxMiB, 1);
      live = new int[plan.peakBlocks()];
    }
  }

  /** Allocates and frees a block, which is there again for the next turn. */
  @Benchmark
  public void sameSize(Engine engine, Sizes sizes) {
    engine.free(engine.allocate(sizes.bytes));
  }

  /** Frees a random one of 1,024 blocks and puts one of 1 byte to 4 MiB in its place. */
  @Benchmark
  public void randomLive(LiveSet set) {
    Engine engine = set.engine;
    int step = set.step++;
    int slot = set.work.slot(step);
    engine.free(set.live[slot]);
    set.live[slot] = engine.allocate(set.work.bytes(step));
  }

  /** All steps of the plan, and then the frees of what is live at its end. */
  @Benchmark
  public void randomAllocations(Engine engine, Grid grid) {
    int[] live = grid.live;
    int blocks = 0;
    for (int i = 0; i < grid.plan.length(); i++) {
      long step = grid.plan.step(i);
      if (step >= 0) {
        live[blocks++] = engine.allocate(step);
      } else {
        int victim = (int) (-1 - step);
        int block = live[victim];
        live[victim] = live[--blocks];
        engine.free(block);
      }
    }
    while (blocks > 0) {
      engine.free(live[--blocks]);
    }
  }
}
