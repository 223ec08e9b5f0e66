package io.cuvette.instrument.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import io.cuvette.instrument.internal.sanitizer.SanitizerCore;
import io.cuvette.instrument.internal.sanitizer.SanitizerStreams;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

class HappensBeforeTest {
  private final HappensBefore order = new HappensBefore();
  private final Lane lane = order.create(0, "a stream", false);
  private final Lane other = order.create(0, "another", false);

  /** A program may make streams, and destroy them, for ever. */
  @Test
  void destroyedStream_isForgotten_onceItsWorkIsFinished() {
    long work = lane.next();
    other.seen.merge(lane.known());
    order.destroy(lane);
    assertThat(lane.isRetired()).isFalse();
    assertThat(other.seen.covers(lane, work)).isTrue();
    order.finish(lane.known());
    assertThat(lane.isRetired()).isTrue();
    assertThat(lane.isFinished(work)).isTrue();
    assertThat(other.seen.covers(lane, work)).isFalse();
  }

  @Test
  void streamsThatWereDestroyedWhenTheirWorkWasDone_areKeptByNothing() {
    List<WeakReference<Lane>> gone = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      gone.add(endedStream());
    }
    for (int i = 0; i < 10 && gone.stream().anyMatch(each -> each.get() != null); i++) {
      System.gc();
    }
    assertThat(gone).allMatch(each -> each.get() == null);
  }

  private WeakReference<Lane> endedStream() {
    Lane ended = order.create(0, "a short one", true);
    long _ = ended.next();
    other.seen.merge(ended.known());
    order.join(order.standard(0, 0)); // which knows of all
    order.finish(ended.known());
    order.destroy(ended);
    return new WeakReference<>(ended);
  }

  @Test
  void liveStream_isKept_thoughItsWorkIsFinished() {
    long work = lane.next();
    order.finish(lane.known());
    assertThat(lane.isRetired()).isFalse();
    assertThat(lane.isFinished(work)).isTrue();
    assertThat(lane.isFinished(lane.next())).isFalse();
  }

  /** The call that destroys it, and not the order alone. */
  @Test
  void streamThatAProgramDestroyed_isForgotten() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      SanitizerCore core = new SanitizerCore(_ -> {});
      SanitizerStreams streams = new SanitizerStreams(driver, core);
      long handle = streams.streamCreateWithPriority(0, 1, 0);
      CallTrace here = CallTrace.passing("use");
      Lane made = Objects.requireNonNull(core.streams.lane(0, handle, here, new Findings()));
      streams.streamDestroy(0, handle);
      assertThat(made.isRetired()).isTrue();
    }
  }
}
