package io.cuvette;

import io.cuvette.internal.graph.GraphArena;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;

/**
 * Memory that several graphs of a device share, which therefore never run at the same time: such as
 * the graphs of an inference server, one for each batch size. What allocations of one capture have
 * closed, the next capture takes again, while the first one's graph is still there; each launch
 * waits for the last one, in whichever stream that was. Thread-safe.
 *
 * <p>A pool looks for room in what it has for the graphs already. Capture the largest first, or
 * create the memory with as many bytes as that needs ({@link CudaDevice#createGraphMemory(long)}):
 * then all together hold as much as the largest. What one graph leaves in a buffer is overwritten
 * by the launch of another; results are copied out before, or their buffers stay open during the
 * other captures.
 *
 * <p>The memory belongs to the pools that the captures allocate from, which count it ({@link
 * PoolStats#graphBytes}), until this is closed and all its graphs are gone.
 */
public final class GraphMemory implements AutoCloseable {
  private final GraphArena core;
  private final ObjectEnding ending;

  GraphMemory(Device device) {
    GraphArena arena = new GraphArena(device);
    this.core = arena;
    Session of = device.session();
    String text = "graph memory of " + device;
    this.ending = of.gate().make(() -> ObjectEnding.of(this, of, text, false, arena::close));
  }

  /** {@return the number of the device} */
  public int deviceId() {
    return core.device().id();
  }

  /** What captures take from, as the engine knows it, as long as this is open. */
  GraphArena open() {
    core.device().session().checkOpen();
    ending.checkOpen();
    return core;
  }

  /** {@return whether this is closed} */
  public boolean isClosed() {
    return ending.ended();
  }

  /**
   * Ends it: there are no more captures with this memory. Graphs that have it go on, and it goes
   * back to its pools with the last of them. Does nothing the second time.
   */
  @Override
  public void close() {
    ending.close(this);
  }

  @Override
  public String toString() {
    return ending.describe();
  }
}
