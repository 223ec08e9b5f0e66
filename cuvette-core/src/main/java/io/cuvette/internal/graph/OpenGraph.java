package io.cuvette.internal.graph;

import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A graph as the engine knows it. What was instantiated from it goes on after its end. Thread-safe.
 */
public final class OpenGraph extends GraphObject {
  private static final AtomicLong NUMBERS = new AtomicLong();

  final Retained retained;

  /** Tells graphs apart, also when they are gone. */
  final long number = NUMBERS.incrementAndGet();

  private OpenGraph(Device device, @Nullable GraphArena memory, Retained retained, long handle) {
    super(device, memory, handle, new Handle(device.session(), handle, retained));
    this.retained = retained;
  }

  /** What keeps the memory and the events of its nodes. */
  public Retained retained() {
    return retained;
  }

  /** The graph of the driver. */
  private static final class Handle extends Ended {
    private final Retained retained;

    Handle(Session session, long value, Retained retained) {
      super(session, value);
      this.retained = retained;
    }

    @Override
    void destroy() {
      session.driver().graphs().graphDestroy(value);
    }

    @Override
    void over(boolean withSession) {
      retained.release();
    }

    @Override
    public String toString() {
      return "graph 0x" + Long.toHexString(value);
    }
  }

  /** Makes a graph of the driver, which ends with the result; that takes over what it retains. */
  static OpenGraph make(
      Device device, @Nullable GraphArena memory, Retained retained, LongSupplier call) {
    return device
        .session()
        .gate()
        .make(() -> registered(device, memory, retained, call.getAsLong()));
  }

  /** The driver gets the graph back if there is no Java heap for it. */
  private static OpenGraph registered(
      Device device, @Nullable GraphArena memory, Retained retained, long handle) {
    try {
      OpenGraph graph = new OpenGraph(device, memory, retained, handle);
      graph.listed();
      return graph;
    } catch (OutOfMemoryError e) {
      device.session().driver().graphs().graphDestroy(handle);
      throw e;
    }
  }

  /** A graph without nodes (cuGraphCreate). */
  public static OpenGraph empty(Device device) {
    device.session().checkOpen();
    device.session().leaks().drain();
    return make(device, null, new Retained(), () -> device.context().graphs().graphCreate());
  }

  /** A graph with copies of all nodes (cuGraphClone). */
  public OpenGraph copy() {
    device.session().leaks().drain();
    Retained copy = new Retained();
    try {
      return make(device, memory, copy, () -> call(source -> copied(source, copy)));
    } catch (RuntimeException | Error e) {
      copy.release();
      throw e;
    }
  }

  private long copied(long source, Retained copy) {
    copy.addAll(retained);
    return device.context().graphs().graphClone(source);
  }
}
