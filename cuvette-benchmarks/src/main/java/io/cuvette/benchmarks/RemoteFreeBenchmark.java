package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Group;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Control;

/**
 * A producer allocates, a consumer on another thread frees. With {@code -t 8} there are four such
 * couples. A score counts what both do: a pair is one of each.
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class RemoteFreeBenchmark {
  private static final int MIB = 1 << 20;

  /** Made by JMH. */
  public RemoteFreeBenchmark() {}

  /** Blocks on their way from one producer to one consumer. A slot that holds null is empty. */
  @State(Scope.Group)
  public static class Ring {
    private static final int SLOTS = 256;
    private final AtomicReferenceArray<@Nullable Buffer> slots = new AtomicReferenceArray<>(SLOTS);

    /** Made by JMH. */
    public Ring() {}

    boolean offer(Position position, Buffer buffer) {
      if (slots.getAcquire(position.slot) != null) {
        return false;
      }
      slots.setRelease(position.slot, buffer);
      position.slot = (position.slot + 1) & (SLOTS - 1);
      return true;
    }

    @Nullable Buffer poll(Position position) {
      Buffer buffer = slots.getAcquire(position.slot);
      if (buffer != null) {
        slots.setRelease(position.slot, null);
        position.slot = (position.slot + 1) & (SLOTS - 1);
      }
      return buffer;
    }

    /** Frees what the consumer left. */
    @TearDown(Level.Iteration)
    public void close() {
      for (int i = 0; i < SLOTS; i++) {
        Buffer buffer = slots.getAndSet(i, null);
        if (buffer != null) {
          buffer.close();
        }
      }
    }
  }

  /**
   * Where in its ring a producer or a consumer is; apart from the ring, so that they share no line.
   */
  @State(Scope.Thread)
  public static class Position {
    int slot;

    /** Made by JMH. */
    public Position() {}

    /** Both start at the first slot. */
    @Setup(Level.Iteration)
    public void reset() {
      slot = 0;
    }
  }

  /** Allocates and passes on. */
  @Benchmark
  @Group("couple")
  public void produce(
      PoolState state, OwnStream own, Ring ring, Position position, Control control) {
    Buffer buffer = state.pool.allocate(MIB, own.stream);
    while (!ring.offer(position, buffer)) {
      if (control.stopMeasurement) {
        buffer.close();
        return;
      }
      Thread.onSpinWait();
    }
  }

  /** Takes over and frees. */
  @Benchmark
  @Group("couple")
  public void consume(Ring ring, Position position, Control control) {
    Buffer buffer = ring.poll(position);
    while (buffer == null && !control.stopMeasurement) {
      Thread.onSpinWait();
      buffer = ring.poll(position);
    }
    if (buffer != null) {
      buffer.close();
    }
  }
}
