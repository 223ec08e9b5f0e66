package io.cuvette.benchmarks;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * A device, a pool and a stream that all threads of a benchmark share. The device is the one that
 * {@code -Dcuvette.device} or {@code CUVETTE_DEVICE} names.
 */
@State(Scope.Benchmark)
public class PoolState {
  Cuda cuda;
  MemoryPool pool;
  CudaStream stream;

  /** Made by JMH. */
  public PoolState() {}

  /** Opens the device and makes the pool. */
  @Setup(Level.Trial)
  public void open() {
    CudaOptions options = CudaOptions.DEFAULTS;
    // Again from the property: Main may have set it after the defaults were made.
    String device = System.getProperty("cuvette.device", options.device());
    cuda = Cuda.open(options.withDevice(device));
    pool = new MemoryPool(cuda);
    stream = newStream();
  }

  CudaStream newStream() {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  /** Closes all of them. */
  @TearDown(Level.Trial)
  public void close() {
    stream.close();
    pool.close();
    cuda.close();
  }
}
