package io.cuvette.instrument.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Objects;
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

  /** So that a program that goes on for ever does not fill the heap with what it destroyed. */
  @Test
  void onlyTheLastDestroyed_areRemembered() {
    Handles<String> handles = new Handles<>("pool");
    CallTrace here = CallTrace.passing("here");
    for (long each = 1; each <= 5_000; each++) {
      handles.add(each, "it", here);
      assertThat(handles.destroy(each, here)).isNotNull();
    }
    assertThat(handles.isDead(1)).isFalse();
    assertThat(handles.isDead(5_000 - 4_096)).isFalse();
    assertThat(handles.isDead(5_000 - 4_095)).isTrue();
    assertThat(handles.isDead(5_000)).isTrue();
  }

  /** It is owed as often as before, be it one destruction of several or the last. */
  @Test
  void destructionThatTheDriverRefused_isStillOwed() {
    Handles<String> handles = new Handles<>("library");
    CallTrace here = CallTrace.passing("here");
    handles.addOnceMore(5, "it", here);
    handles.addOnceMore(5, "it", here);
    handles.restore(Objects.requireNonNull(handles.destroy(5, here)));
    assertThat(handles.destroy(5, here)).isNotNull();
    assertThat(handles.isLive(5)).isTrue();
    handles.restore(Objects.requireNonNull(handles.destroy(5, here)));
    assertThat(handles.isDead(5)).isFalse();
    assertThat(handles.destroy(5, here)).isNotNull();
    assertThat(handles.isLive(5)).isFalse();
  }
}
