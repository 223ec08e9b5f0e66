package io.cuvette.benchmarks;

import io.cuvette.CudaStream;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** A stream of each thread's own. Confined to its thread. */
@State(Scope.Thread)
public class OwnStream {
  CudaStream stream;

  /** Made by JMH. */
  public OwnStream() {}

  /** Makes the stream. */
  @Setup(Level.Trial)
  public void open(PoolState state) {
    stream = state.newStream();
  }

  /** Closes it. */
  @TearDown(Level.Trial)
  public void close() {
    stream.close();
  }
}
