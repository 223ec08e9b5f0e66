package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.memory.KnownObjects.Retained;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Whoever sees that an object of a graph is gone knows that the launches of the graph are done. */
class KnownObjectsTest {
  private static final long GRAPH = 1;
  private static final long COPY = 2;
  private static final long OBJECT = 10;

  private final KnownStreams streams = new KnownStreams();
  private final KnownObjects objects = new KnownObjects(streams);
  private final Lane lane = streams.create(0, 0x100, false, null);

  private Access launched(List<Retained> retained) {
    Range range = new Range(0x1000, 64, Kind.WRITE, false);
    Access work = new Access(lane, lane.next(), range, CallTrace.passing("launch"));
    objects.launched(retained, lane);
    return work;
  }

  @Test
  void endOfAnObject_isTheEndOfTheLaunches() {
    Retained object = objects.created(OBJECT);
    objects.retained(GRAPH, OBJECT);
    assertThat(objects.of(GRAPH)).containsExactly(object);
    Access launch = launched(objects.of(GRAPH));
    assertThat(streams.order.isFinished(launch)).isFalse();
    objects.destroyed(object);
    assertThat(streams.order.isFinished(launch)).isTrue();
  }

  /** The driver may be quicker than the thread that notes the launch. */
  @Test
  void launchOfAnObjectThatIsGoneAlready_isDone_andOneOfALiveObjectIsNot() {
    Retained gone = objects.created(OBJECT);
    Retained live = objects.created(OBJECT + 1);
    objects.destroyed(gone);
    assertThat(streams.order.isFinished(launched(List.of(live)))).isFalse();
    assertThat(streams.order.isFinished(launched(List.of(gone)))).isTrue();
  }

  @Test
  void copyOfAGraph_hasItsObjects_alsoWhenTheGraphHasEnded() {
    Retained first = objects.created(OBJECT);
    Retained second = objects.created(OBJECT + 1);
    objects.retained(GRAPH, OBJECT);
    objects.copied(GRAPH, COPY);
    objects.retained(COPY, OBJECT + 1);
    objects.copied(COPY, COPY + 1);
    assertThat(objects.ended(GRAPH)).containsExactly(first);
    assertThat(objects.of(GRAPH)).isEmpty();
    assertThat(objects.of(COPY)).containsExactly(first, second);
    assertThat(objects.of(COPY + 1)).containsExactly(first, second);
    objects.copied(GRAPH, COPY + 2);
    assertThat(objects.of(COPY + 2)).isEmpty();
  }

  @Test
  void graphThatDidNotEnd_hasItsObjectsStill() {
    Retained object = objects.created(OBJECT);
    objects.retained(GRAPH, OBJECT);
    objects.restored(GRAPH, objects.ended(GRAPH));
    assertThat(objects.of(GRAPH)).containsExactly(object);
    objects.restored(COPY, objects.ended(COPY));
    assertThat(objects.of(COPY)).isEmpty();
  }

  @Test
  void objectOfSomebodyElse_orThatWasGivenBack_isOfNoGraph() {
    objects.retained(GRAPH, OBJECT);
    assertThat(objects.of(GRAPH)).isEmpty();
    Retained object = objects.created(OBJECT);
    objects.released(OBJECT);
    objects.retained(GRAPH, OBJECT);
    assertThat(objects.of(GRAPH)).isEmpty();
    objects.destroyed(object);
  }
}
