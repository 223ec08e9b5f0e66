package io.cuvette.benchmarks;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;

/**
 * 1 to 16 threads allocate 1 MiB from one pool and close, each on a stream of its own or all on
 * one. The score is pairs of all threads together.
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class ThreadsBenchmark {
  private static final int MIB = 1 << 20;

  /** Made by JMH. */
  public ThreadsBenchmark() {}

  /** One thread, a stream of its own each. */
  @Benchmark
  @Threads(1)
  public void ownStream01(PoolState state, OwnStream own) {
    state.pool.allocate(MIB, own.stream).close();
  }

  /** Two threads, a stream of its own each. */
  @Benchmark
  @Threads(2)
  public void ownStream02(PoolState state, OwnStream own) {
    state.pool.allocate(MIB, own.stream).close();
  }

  /** Four threads, a stream of its own each. */
  @Benchmark
  @Threads(4)
  public void ownStream04(PoolState state, OwnStream own) {
    state.pool.allocate(MIB, own.stream).close();
  }

  /** Eight threads, a stream of its own each. */
  @Benchmark
  @Threads(8)
  public void ownStream08(PoolState state, OwnStream own) {
    state.pool.allocate(MIB, own.stream).close();
  }

  /** Sixteen threads, a stream of its own each. */
  @Benchmark
  @Threads(16)
  public void ownStream16(PoolState state, OwnStream own) {
    state.pool.allocate(MIB, own.stream).close();
  }

  /** Two threads on one stream. */
  @Benchmark
  @Threads(2)
  public void sameStream02(PoolState state) {
    state.pool.allocate(MIB, state.stream).close();
  }

  /** Four threads on one stream. */
  @Benchmark
  @Threads(4)
  public void sameStream04(PoolState state) {
    state.pool.allocate(MIB, state.stream).close();
  }

  /** Eight threads on one stream. */
  @Benchmark
  @Threads(8)
  public void sameStream08(PoolState state) {
    state.pool.allocate(MIB, state.stream).close();
  }

  /** Sixteen threads on one stream. */
  @Benchmark
  @Threads(16)
  public void sameStream16(PoolState state) {
    state.pool.allocate(MIB, state.stream).close();
  }
}
