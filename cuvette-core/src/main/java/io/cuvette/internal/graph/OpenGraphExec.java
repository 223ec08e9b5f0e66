package io.cuvette.internal.graph;

import io.cuvette.GraphOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.lang.ref.Reference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * An executable graph as the engine knows it. It ends also when it is forgotten; launches complete
 * all the same. Thread-safe: one thread at a time is in calls of the driver about it.
 */
public final class OpenGraphExec {
  private static final int FREE_ON_LAUNCH = 1;
  private static final int NODE_PRIORITIES = 8;

  private final Device device;
  private final @Nullable GraphArena memory;
  private final long handle;
  private final ObjectEnding ending;
  private final ReentrantLock lock = new ReentrantLock();

  private OpenGraphExec(OpenGraph of, long handle) {
    this.device = of.device;
    this.memory = of.memory;
    this.handle = handle;
    this.ending =
        new ObjectEnding(
            this, device.session(), new Handle(device.session(), handle, of.memory, new Once()));
  }

  /** The executable of the driver. */
  private record Handle(Session session, long value, @Nullable GraphArena memory, Once destroyed)
      implements ObjectEnding.Ended {
    @Override
    public void end(ObjectEnding ending) {
      session.gate().run(() -> endNow(ending));
    }

    @Override
    public void endNow(ObjectEnding ending) {
      destroyed.free(() -> session.driver().graphs().graphExecDestroy(value));
      ending.forget();
      if (memory != null) {
        memory.executableEnded();
      }
    }

    @Override
    public String toString() {
      return "executable graph 0x" + Long.toHexString(value);
    }
  }

  /** Instantiates a graph (cuGraphInstantiateWithParams). */
  public static OpenGraphExec of(OpenGraph graph, GraphOptions options) {
    Session session = graph.device.session();
    session.leaks().drain();
    long flags =
        (options.freeOnLaunch() ? FREE_ON_LAUNCH : 0)
            | (options.nodePriorities() ? NODE_PRIORITIES : 0);
    return session
        .gate()
        .make(() -> registered(graph, graph.call(handle -> instantiated(graph, handle, flags))));
  }

  private static long instantiated(OpenGraph graph, long handle, long flags) {
    GraphCalls driver = graph.device.context().graphs();
    InstantiatedGraph made = driver.graphInstantiateWithParams(graph.device.id(), handle, flags, 0);
    if (made.result() != 0) {
      throw GraphRefusals.ofInstantiation(made, driver);
    }
    return made.executable();
  }

  /** The driver gets the executable back if there is no Java heap for it. */
  private static OpenGraphExec registered(OpenGraph graph, long handle) {
    try {
      OpenGraphExec executable = new OpenGraphExec(graph, handle);
      executable.ending.listed();
      if (graph.memory != null) {
        graph.memory.executableMade();
      }
      return executable;
    } catch (OutOfMemoryError e) {
      Failures.closeAfter(
          e, () -> graph.device.session().driver().graphs().graphExecDestroy(handle));
      throw e;
    }
  }

  /** Runs the graph in order of a stream (cuGraphLaunch). */
  public void launch(OpenStream stream) {
    checkOn(stream);
    CudaDriver driver = stream.holdToQueue();
    try {
      checkNotCaptured(stream, "launch");
      ending.hold();
      try {
        if (memory == null) {
          launchHeld(driver, stream.state);
        } else {
          memory.launch(stream.state, () -> launchHeld(driver, stream.state));
        }
      } finally {
        unhold();
      }
    } finally {
      stream.unhold();
    }
  }

  private void launchHeld(CudaDriver driver, DriverStream stream) {
    lock.lock();
    try {
      driver.graphs().graphLaunch(stream.device.id(), handle, stream.handle);
    } finally {
      lock.unlock();
    }
  }

  /** Prepares the next launch in order of a stream (cuGraphUpload). */
  public void upload(OpenStream stream) {
    checkOn(stream);
    CudaDriver driver = stream.holdToQueue();
    try {
      checkNotCaptured(stream, "upload");
      ending.hold();
      try {
        uploadHeld(driver, stream.state);
      } finally {
        unhold();
      }
    } finally {
      stream.unhold();
    }
  }

  private void uploadHeld(CudaDriver driver, DriverStream stream) {
    lock.lock();
    try {
      driver.graphs().graphUpload(stream.device.id(), handle, stream.handle);
    } finally {
      lock.unlock();
    }
  }

  /** Takes over what the nodes of a graph of the same form do (cuGraphExecUpdate). */
  public void update(OpenGraph graph) {
    if (graph.device != device) {
      throw new IllegalArgumentException(
          "update: graph of %s (expected: of %s)".formatted(graph.device, device));
    }
    if (graph.memory != memory) {
      throw new IllegalArgumentException(
          "update: %s has other memory than %s (expected: captured with the same GraphMemory, or"
                  .formatted(graph, this)
              + " both without one)");
    }
    GraphCalls driver = device.context().graphs();
    GraphUpdateResult done =
        graph.call(source -> call(() -> driver.graphExecUpdate(device.id(), handle, source)));
    if (done.result() != 0) {
      throw GraphRefusals.ofUpdate(done, driver);
    }
  }

  private void checkOn(OpenStream stream) {
    stream.checkOf(device.session());
    if (stream.on() != device) {
      throw new IllegalArgumentException(
          "stream: %s (expected: a stream of %s, for which the graph was made)"
              .formatted(stream, device));
    }
  }

  /** The driver would refuse it, and the capture be invalid. */
  private static void checkNotCaptured(OpenStream stream, String call) {
    if (stream.state.isExposed() || stream.state.isBuiltIn()) {
      stream.state.capturing.check(
          call, " (expected: a stream that is not; graphs have graphs as child nodes)");
    }
  }

  private <T> T call(Supplier<T> call) {
    ending.hold();
    try {
      return device.session().gate().ask(() -> callAlone(call)); // who closes the Cuda waits

    } finally {
      unhold();
    }
  }

  private <T> T callAlone(Supplier<T> call) {
    lock.lock();
    try {
      return call.get();
    } finally {
      lock.unlock();
    }
  }

  private void unhold() {
    try {
      ending.unhold();
    } finally {
      Reference.reachabilityFence(this);
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
