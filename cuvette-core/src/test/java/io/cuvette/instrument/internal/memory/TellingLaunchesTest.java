package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import org.junit.jupiter.api.Test;

class TellingLaunchesTest {
  private final KnownStreams streams = new KnownStreams();
  private final Lane lane = streams.create(0, 0x100, false, null);
  private final TellingLaunches launches = new TellingLaunches();
  private final TouchedBytes one = new TouchedBytes(0);
  private final TouchedBytes other = new TouchedBytes(1);

  @Test
  void launch_tellsWhatItCameBehind_onceItTouchesMemory() {
    long earlier = lane.next();
    launches.begins(one, lane.known().copy());
    long launch = lane.next();
    assertThat(launches.haveTold()).isFalse();
    one.touched(0x1000, 4, Touch.READ);
    assertThat(launches.haveTold()).isTrue();
    Clock told = launches.told();
    assertThat(told.covers(lane, earlier)).isTrue();
    assertThat(told.covers(lane, launch)).isFalse();
    one.touched(0x1004, 4, Touch.WRITE);
    assertThat(launches.haveTold()).as("once").isFalse();
  }

  /** The driver may have that first which asked last. */
  @Test
  void launchThatAskedLater_tells_whileTheOtherOneHasNotBegun() {
    launches.begins(one, lane.known().copy());
    long between = lane.next();
    launches.begins(other, lane.known().copy());
    other.touched(0x1000, 4, Touch.WRITE);
    assertThat(launches.told().covers(lane, between)).isTrue();
  }
}
