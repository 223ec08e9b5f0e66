package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeEvents;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeUse;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class KnownGraphsTest {
  private static final long EXECUTABLE = 1;
  private static final long GRAPH = 2;

  private final KnownStreams streams = new KnownStreams();
  private final KnownGraphs graphs = new KnownGraphs(new KnownMemory(streams.order), streams);
  private final Lane lane = streams.create(0, 0x100, false, null);
  private final TouchedBytes kernel = new TouchedBytes(0);
  private final TouchedBytes disabled = new TouchedBytes(1);

  private static NodeUse node(long handle, TouchedBytes watcher) {
    NodeEvents events = new NodeEvents(0, 0, watcher, null);
    return new NodeUse(handle, List.of(), List.of(), null, 0, events);
  }

  /** The next one may be on its way to the driver meanwhile. */
  @Test
  void launch_isThatWhoseKernelsRunNext() {
    graphs.instantiated(EXECUTABLE, GRAPH, List.of(node(3, kernel), node(4, disabled)));
    graphs.enabled(EXECUTABLE, 4, false);
    graphs.launched(EXECUTABLE, lane, CallTrace.passing("graphLaunch"));
    AtomicInteger noted = new AtomicInteger();
    graphs.beginnings(EXECUTABLE).forEach(each -> each.begins(noted::incrementAndGet));
    kernel.touched(0x1000, 4, Touch.WRITE);
    assertThat(noted).as("runs of the first launch").hasValue(0);
    disabled.touched(0x1000, 4, Touch.WRITE);
    assertThat(noted).as("it had none there").hasValue(1);
  }
}
