package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.Retainable;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What a capture was given to keep is let go of once, with the last that has its graph. */
class CaptureHoldsTest {
  private final Capture capture = Capture.built();
  private final AtomicInteger held = new AtomicInteger(1);

  private final Retainable retained =
      new Retainable() {
        @Override
        public void retain() {
          held.incrementAndGet();
        }

        @Override
        public void letGo() {
          held.decrementAndGet();
        }
      };

  @Test
  void whatIsHeld_isLetGoOf_withTheLastHolder() {
    capture.hold(retained);
    capture.retain();
    capture.letGo();
    assertThat(held).hasValue(1);
    assertThat(capture.isDone()).isFalse();
    capture.letGo();
    assertThat(capture.isDone()).isTrue();
    assertThat(held).hasValue(0);
  }

  /** Nobody comes again then. */
  @Test
  void whatIsHeldAfterTheEnd_isLetGoOf_atOnce() {
    capture.letGo();
    capture.hold(retained);
    assertThat(held).hasValue(0);
  }
}
