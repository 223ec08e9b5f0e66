package io.cuvette.internal.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.EventOptions;
import org.junit.jupiter.api.Test;

class EventFlagsTest {
  /** CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING and CU_EVENT_INTERPROCESS. */
  @Test
  void eachOption_isOneFlag() {
    assertThat(EventFlags.of(new EventOptions(false, true, false))).isZero();
    assertThat(EventFlags.of(new EventOptions(true, true, false))).isEqualTo(1);
    assertThat(EventFlags.of(new EventOptions(false, false, false))).isEqualTo(2);
    assertThat(EventFlags.of(new EventOptions(false, false, true))).isEqualTo(6);
    assertThat(EventFlags.of(new EventOptions(true, false, true))).isEqualTo(7);
  }
}
