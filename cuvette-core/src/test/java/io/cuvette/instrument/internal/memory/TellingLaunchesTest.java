package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import org.junit.jupiter.api.Test;

class TellingLaunchesTest {
  private final KnownStreams streams = new KnownStreams();
  private final Lane lane = streams.create(0, 0x100, false, null);
  private final TellingLaunches launches = new TellingLaunches();

  /** It is noted once the driver has it, and the stream has nothing else to do by then. */
  @Test
  void launchThatBegins_behindWorkThatIsDone_hasToldNothing() {
    long earlier = lane.next();
    streams.order.finish(lane.known());
    launches.begins(new TouchedBytes(0), lane, lane.known().copy());
    assertThat(launches.haveTold()).isFalse();
    long launch = lane.next();
    assertThat(launches.haveTold()).isFalse();
    streams.order.finish(lane.known());
    assertThat(launches.haveTold()).isTrue();
    assertThat(launches.told().covers(lane, earlier)).isTrue();
    assertThat(launch).isGreaterThan(earlier);
  }
}
