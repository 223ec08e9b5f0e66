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
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** One thread allocates from the caching pool and closes: one size, and a random live set. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class PoolBenchmark {

  /** Made by JMH. */
  public PoolBenchmark() {}

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
    final RandomWork work = new RandomWork();
    final @Nullable Buffer[] live = new Buffer[RandomWork.SLOTS];
    int step;

    /** Made by JMH. */
    public LiveSet() {}

    /** Frees what is live. */
    @TearDown(Level.Iteration)
    public void close() {
      PoolWork.closeAll(live);
    }
  }

  /** Allocates and frees a block, which is there again for the next turn. */
  @Benchmark
  public void sameSize(PoolState state, Sizes sizes) {
    state.pool.allocate(sizes.bytes, state.stream).close();
  }

  /** Frees a random one of 1,024 blocks and puts one of 1 byte to 4 MiB in its place. */
  @Benchmark
  public void randomLive(PoolState state, LiveSet set) {
    int step = set.step++;
    int slot = set.work.slot(step);
    Buffer old = set.live[slot];
    if (old != null) {
      old.close();
    }
    set.live[slot] = state.pool.allocate(set.work.bytes(step), state.stream);
  }
}
