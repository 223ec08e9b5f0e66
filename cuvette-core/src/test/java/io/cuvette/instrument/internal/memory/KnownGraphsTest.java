package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeEvents;
import io.cuvette.instrument.internal.memory.KnownGraphs.NodeUse;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class KnownGraphsTest {
  private static final long EXECUTABLE = 1;
  private static final long GRAPH = 2;
  private static final long BLOCK = 0x4000;
  private static final CallTrace HERE = CallTrace.passing("here");

  private final KnownStreams streams = new KnownStreams();
  private final KnownMemory memory = new KnownMemory(streams.order);
  private final KnownGraphs graphs = new KnownGraphs(memory, streams);
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
    graphs.launched(EXECUTABLE, lane, HERE);
    AtomicInteger noted = new AtomicInteger();
    graphs.beginnings(EXECUTABLE).forEach(each -> each.begins(noted::incrementAndGet));
    kernel.touched(0x1000, 4, Touch.WRITE);
    assertThat(noted).as("runs of the first launch").hasValue(0);
    disabled.touched(0x1000, 4, Touch.WRITE);
    assertThat(noted).as("it had none there").hasValue(1);
  }

  @Test
  void launch_usesNoMemoryThatIsWhereItsOwnWas() {
    memory.allocated(BLOCK, 64, "memFree", HERE);
    List<Range> ranges = List.of(new Range(BLOCK, 64, Kind.WRITE, false));
    NodeEvents none = new NodeEvents(0, 0, null, null);
    graphs.instantiated(
        EXECUTABLE, GRAPH, List.of(new NodeUse(3, List.of(), ranges, null, 0, none)));
    assertThat(memory.free(BLOCK, HERE)).isNotNull();
    memory.allocated(BLOCK, 64, "memFree", HERE);
    graphs.launched(EXECUTABLE, lane, HERE);
    Findings findings = new Findings();
    memory.checkFree(BLOCK, "memFree", HERE, findings);
    assertThat(findings.reports()).isEmpty();
  }
}
