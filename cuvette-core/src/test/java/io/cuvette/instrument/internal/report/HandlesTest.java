package io.cuvette.instrument.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class HandlesTest {
  @Test
  void handleThatWasAddedThrice_isLiveUntilItsThirdDestruction() {
    Handles<String> handles = new Handles<>("pool");
    CallTrace here = CallTrace.passing("here");
    for (int i = 0; i < 3; i++) {
      handles.addOnceMore(5, "it", here);
    }
    for (int i = 0; i < 3; i++) {
      assertThat(handles.isLive(5)).isTrue();
      assertThat(handles.destroy(5, here)).isNotNull();
    }
    assertThat(handles.isLive(5)).isFalse();
    assertThat(handles.destroy(5, here)).isNull();
  }
}
