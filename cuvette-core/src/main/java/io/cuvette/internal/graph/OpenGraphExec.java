package io.cuvette.internal.graph;

import io.cuvette.GraphOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.fence.Retainable;
import io.cuvette.internal.fence.Retained;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/**
 * An executable graph as the engine knows it. Launches complete after its end all the same.
 * Thread-safe.
 */
public final class OpenGraphExec extends GraphObject {
  private static final int FREE_ON_LAUNCH = 1;
  private static final int NODE_PRIORITIES = 8;

  private final Kept kept;

  /** The number of the graph that it was instantiated from. */
  private final long of;

  private final boolean freesOnLaunch;

  private OpenGraphExec(OpenGraph of, Kept kept, long handle, boolean freesOnLaunch) {
    super(of.device, of.memory, handle, new Handle(of, kept, handle));
    this.kept = kept;
    this.of = of.number;
    this.freesOnLaunch = freesOnLaunch;
  }

  /**
   * What an executable keeps, and where it ran last: each of its launches runs behind the one
   * before. For one thread at a time.
   */
  private static final class Kept {
    private Retained retained = new Retained();

    /** Where the last launch was that may use what is retained now; null before the first. */
    private @Nullable DriverStream lastIn;

    /** Whether an update left something to be released behind launches. */
    private volatile boolean leaves;

    /** Where launches may run still that came before one that the driver refused. */
    private final Set<DriverStream> before = new HashSet<>(0);

    /** Launches without need for Java heap, as long as no launch fails. */
    void launch(GraphCalls driver, long handle, DriverStream stream) {
      retained.checkHosts();
      DriverStream last = lastIn;
      lastIn = stream; // first: the driver may have launched what it reports an error for
      try {
        driver.graphLaunch(stream.device.id(), handle, stream.handle);
      } catch (RuntimeException | Error e) {
        if (last != null) {
          before.add(last);
        }
        throw e;
      }
      before.clear(); // the new one is behind them
    }

    /** The executable does something else from now on. */
    void replace(Retained next) {
      Retained replaced = retained;
      retained = next;
      releaseAfterLaunches(replaced);
      lastIn = null; // those before use what was replaced
    }

    private void releaseAfterLaunches(Retained retained) {
      DriverStream last = lastIn;
      if (last == null) {
        retained.release();
        return;
      }
      Set<DriverStream> streams = new HashSet<>(before);
      streams.add(last);
      leaves = true;
      AtomicInteger left = new AtomicInteger(streams.size());
      List<WorkMarker> markers = new ArrayList<>();
      for (DriverStream stream : streams) {
        WorkMarker marker = WorkMarker.of(stream);
        markers.add(marker);
        stream
            .streams
            .captures()
            .after(
                marker,
                () -> {
                  if (left.decrementAndGet() == 0) {
                    retained.release();
                  }
                });
      }
      Failures failures = new Failures();
      markers.forEach(marker -> failures.run(marker::record));
      failures.throwFirst();
    }
  }

  /** The executable of the driver. */
  private static final class Handle extends Ended {
    private final @Nullable GraphArena memory;
    private final Kept kept;

    Handle(OpenGraph of, Kept kept, long value) {
      super(of.device.session(), value);
      this.memory = of.memory;
      this.kept = kept;
    }

    @Override
    void destroy() {
      session.driver().graphs().graphExecDestroy(value);
    }

    @Override
    void over(boolean withSession) {
      try {
        if (withSession) {
          kept.retained.release();
        } else {
          kept.releaseAfterLaunches(kept.retained);
        }
      } finally {
        if (memory != null) {
          memory.executableEnded();
        }
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
    Kept kept = new Kept();
    try {
      return session
          .gate()
          .make(() ->
              registered(
                  graph,
                  kept,
                  graph.call(of -> instantiated(graph, kept, of, flags)),
                  options.freeOnLaunch()));
    } catch (RuntimeException | Error e) {
      kept.retained.release();
      throw e;
    }
  }

  private static long instantiated(OpenGraph graph, Kept kept, long handle, long flags) {
    kept.retained.addAll(graph.retained);
    GraphCalls driver = graph.device.context().graphs();
    InstantiatedGraph made = driver.graphInstantiateWithParams(graph.device.id(), handle, flags, 0);
    if (made.result() != 0) {
      throw GraphRefusals.ofInstantiation(made, driver);
    }
    return made.executable();
  }

  /** The driver gets the executable back if there is no Java heap for it. */
  private static OpenGraphExec registered(
      OpenGraph graph, Kept kept, long handle, boolean freesOnLaunch) {
    try {
      OpenGraphExec executable = new OpenGraphExec(graph, kept, handle, freesOnLaunch);
      executable.listed();
      if (graph.memory != null) {
        graph.memory.executableMade();
      }
      return executable;
    } catch (OutOfMemoryError e) {
      graph.device.session().driver().graphs().graphExecDestroy(handle);
      throw e;
    }
  }

  /** Whether it was instantiated from a graph, which may be gone. */
  public boolean isOf(OpenGraph graph) {
    return graph.number == of;
  }

  /** What launches from now on keep; for who is {@link #alone} with this. */
  public Retained retained() {
    return kept.retained;
  }

  /** Lets go of what launches before now use, likewise. */
  public void letGoAfterLaunches(Retainable used) {
    Retained before = new Retained();
    before.take(used);
    kept.releaseAfterLaunches(before);
  }

  /** Takes back what was left behind launches that are done by now. */
  public void drain() {
    if (kept.leaves) {
      kept.leaves = false;
      device.session().leaks().drain();
    }
  }

  /** Runs the graph in order of a stream (cuGraphLaunch). */
  public void launch(OpenStream stream) {
    checkOn(stream);
    CudaDriver driver = stream.holdToQueue();
    try {
      if (memory == null) {
        launchHeld(driver, stream.state);
      } else {
        checkNotCaptured(stream.state, "launch"); // which must not wait for the launch before
        memory.launch(stream.state, () -> launchHeld(driver, stream.state));
      }
    } finally {
      stream.unhold();
    }
  }

  private void launchHeld(CudaDriver driver, DriverStream stream) {
    long handle = beginCall();
    Lock ends = stream.capturing.ends();
    ends.lock();
    try {
      checkNotCaptured(stream, "launch");
      kept.launch(driver.graphs(), handle, stream);
    } catch (CudaException e) {
      throw freesOnLaunch ? e : GraphRefusals.ofLaunch(e);
    } finally {
      ends.unlock();
      endCall();
    }
  }

  /** Prepares the next launch in order of a stream (cuGraphUpload). */
  public void upload(OpenStream stream) {
    checkOn(stream);
    CudaDriver driver = stream.holdToQueue();
    try {
      long handle = beginCall();
      try {
        boolean _ =
            stream.state.capturing.alone(() -> {
              checkNotCaptured(stream.state, "upload");
              driver.graphs().graphUpload(device.id(), handle, stream.state.handle);
              return true;
            });
      } finally {
        endCall();
      }
    } finally {
      stream.unhold();
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
    drain();
    GraphCalls driver = device.context().graphs();
    GraphUpdateResult done = graph.call(source -> call(of -> updated(driver, of, graph, source)));
    if (done.result() != 0) {
      throw GraphRefusals.ofUpdate(done, driver);
    }
  }

  private GraphUpdateResult updated(GraphCalls driver, long handle, OpenGraph graph, long source) {
    Retained next = graph.retained.copy();
    GraphUpdateResult done;
    try {
      done = driver.graphExecUpdate(device.id(), handle, source);
    } catch (RuntimeException | Error e) {
      kept.retained.addAll(next); // it may do this or that now
      next.release();
      throw e;
    }
    if (done.result() == 0) {
      kept.replace(next);
    } else {
      next.release();
    }
    return done;
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
  private static void checkNotCaptured(DriverStream stream, String call) {
    if (stream.isExposed() || stream.isBuiltIn()) {
      stream.capturing.check(
          call, " (expected: a stream that is not; captureChild adds a graph to what is captured)");
    }
  }
}
