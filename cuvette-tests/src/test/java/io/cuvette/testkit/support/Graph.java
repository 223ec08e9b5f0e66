package io.cuvette.testkit.support;

import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.PoolStats;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.InstantiatedGraph;
import java.util.concurrent.locks.LockSupport;

/**
 * What a stream captured, as another library would have it: through the driver alone. Closing drops
 * the graph and its executable. Confined to one thread.
 */
public final class Graph implements AutoCloseable {
  /** The modes of captures: global, thread-local, relaxed. */
  public static final int[] MODES = {0, 1, 2};

  private static final int NON_BLOCKING = 1;
  private static final int LOOKS = 5000;
  private static final long LOOKS_APART_NANOS = 1_000_000;

  private final CudaDriver driver;
  private final int device;
  private long graph;
  private long executable;

  private Graph(CudaDriver driver, int device, long graph) {
    this.driver = driver;
    this.device = device;
    this.graph = graph;
  }

  /** Captures what the body does in a stream. */
  public static Graph of(CudaStream stream, Runnable body) {
    return of(stream, 2, body);
  }

  /** Captures what the body does in a stream. */
  public static Graph of(CudaStream stream, int mode, Runnable body) {
    return of(stream.device().cuda().driver(), stream.device().id(), stream.handle(), mode, body);
  }

  /** Captures a stream that nobody else knows, while the body does something beside it. */
  public static Graph beside(CudaDriver driver, int device, int mode, Runnable body) {
    long stream = driver.streams().streamCreateWithPriority(device, NON_BLOCKING, 0);
    try {
      return of(driver, device, stream, mode, body);
    } finally {
      driver.streams().streamDestroy(device, stream);
    }
  }

  private static Graph of(CudaDriver driver, int device, long stream, int mode, Runnable body) {
    driver.captures().streamBeginCapture(device, stream, mode);
    try {
      body.run();
      if (driver.captures().streamIsCapturing(device, stream) != 1) {
        throw new AssertionError("the capture is invalid");
      }
    } catch (RuntimeException | Error e) {
      giveUp(driver, device, stream);
      throw e;
    }
    return new Graph(driver, device, driver.captures().streamEndCapture(device, stream));
  }

  private static void giveUp(CudaDriver driver, int device, long stream) {
    try {
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(device, stream));
    } catch (RuntimeException e) {
      // The capture was invalid, which is being told.
    }
  }

  /**
   * Waits until the library knows that the graphs are gone which used a pool's memory: the driver
   * reports it on a thread of its own. What else they used is released by that too.
   */
  public static void awaitGone(MemoryPool pool, CudaStream stream) {
    for (int i = 0; i < LOOKS && keptBytes(pool) > 0; i++) {
      LockSupport.parkNanos(LOOKS_APART_NANOS);
    }
    if (keptBytes(pool) > 0) {
      throw new AssertionError(
          "the memory of a graph did not come back: pending=%d, of graphs=%d; %s"
              .formatted(pool.stats().pendingBytes(), pool.stats().graphBytes(), pool.stats()));
    }
    stream.device().cuda().leaksFound();
  }

  private static long keptBytes(MemoryPool pool) {
    PoolStats stats = pool.stats();
    return stats.pendingBytes() + stats.graphBytes();
  }

  /** Makes the graph executable, and runs it in a stream. */
  public void launch(CudaStream stream) {
    if (executable == 0) {
      InstantiatedGraph made = driver.graphs().graphInstantiateWithParams(device, graph, 0, 0);
      if (made.executable() == 0) {
        throw new AssertionError("the graph was refused: " + made);
      }
      executable = made.executable();
    }
    driver.graphs().graphLaunch(device, executable, stream.handle());
  }

  /** Drops the graph, but not what was made of it. */
  public void destroyGraph() {
    if (graph != 0) {
      driver.graphs().graphDestroy(graph);
      graph = 0;
    }
  }

  @Override
  public void close() {
    destroyGraph();
    if (executable != 0) {
      driver.graphs().graphExecDestroy(executable);
      executable = 0;
    }
  }
}
