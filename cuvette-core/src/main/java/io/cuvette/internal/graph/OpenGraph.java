package io.cuvette.internal.graph;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import java.lang.ref.Reference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongFunction;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A graph as the engine knows it. It ends also when it is forgotten; what was instantiated from it
 * goes on. Thread-safe: one thread at a time is in calls of the driver about it, as CUDA asks for.
 */
public final class OpenGraph {
  final Device device;

  /** What its captured work shares memory with; null if it has memory of its own. */
  final @Nullable GraphArena memory;

  private final long handle;
  private final ObjectEnding ending;
  private final ReentrantLock lock = new ReentrantLock();

  private OpenGraph(Device device, @Nullable GraphArena memory, long handle) {
    this.device = device;
    this.memory = memory;
    this.handle = handle;
    this.ending =
        new ObjectEnding(this, device.session(), new Handle(device.session(), handle, new Once()));
  }

  /** The graph of the driver. */
  private record Handle(Session session, long value, Once destroyed) implements ObjectEnding.Ended {
    @Override
    public void end(ObjectEnding ending) {
      session.gate().run(() -> endNow(ending));
    }

    @Override
    public void endNow(ObjectEnding ending) {
      destroyed.free(() -> session.driver().graphs().graphDestroy(value));
      ending.forget();
    }

    @Override
    public String toString() {
      return "graph 0x" + Long.toHexString(value);
    }
  }

  /** Makes a graph of the driver, which ends with the result. */
  static OpenGraph make(Device device, @Nullable GraphArena memory, LongSupplier call) {
    Session session = device.session();
    session.leaks().drain();
    return session.gate().make(() -> registered(device, memory, call.getAsLong()));
  }

  /** The driver gets the graph back if there is no Java heap for it. */
  private static OpenGraph registered(Device device, @Nullable GraphArena memory, long handle) {
    try {
      OpenGraph graph = new OpenGraph(device, memory, handle);
      graph.ending.listed();
      return graph;
    } catch (OutOfMemoryError e) {
      Failures.closeAfter(e, () -> device.session().driver().graphs().graphDestroy(handle));
      throw e;
    }
  }

  /** A graph with copies of all nodes (cuGraphClone). */
  public OpenGraph copy() {
    return make(device, memory, () -> call(source -> device.context().graphs().graphClone(source)));
  }

  /** Makes a call of the driver with the graph, which is not destroyed meanwhile. */
  public <T> T call(LongFunction<T> call) {
    device.session().checkOpen();
    ending.hold();
    try {
      return device.session().gate().ask(() -> callAlone(call)); // who closes the Cuda waits

    } finally {
      try {
        ending.unhold();
      } finally {
        Reference.reachabilityFence(this);
      }
    }
  }

  private <T> T callAlone(LongFunction<T> call) {
    lock.lock();
    try {
      return call.apply(handle);
    } finally {
      lock.unlock();
    }
  }

  public Device device() {
    return device;
  }

  /** The handle of the driver, as long as it is open. */
  public long handle() {
    ending.checkOpen();
    return handle;
  }

  public boolean isClosed() {
    return ending.ended();
  }

  public void close() {
    ending.close();
  }

  @Override
  public String toString() {
    return ending.describe();
  }
}
