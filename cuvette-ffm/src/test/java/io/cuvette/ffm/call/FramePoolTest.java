package io.cuvette.ffm.call;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.junit.jupiter.api.Test;

class FramePoolTest {
  private final FramePool pool = new FramePool();

  @Test
  void frame_isGivenOutToOneCallAtATime() {
    CallFrame frame = pool.take();
    pool.give(frame);
    Set<CallFrame> taken = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = 0; i < 20; i++) {
      assertThat(taken.add(pool.take())).isTrue();
    }
    assertThat(taken).contains(frame);
  }
}
