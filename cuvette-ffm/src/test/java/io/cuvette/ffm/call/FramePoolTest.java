package io.cuvette.ffm.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.ffm.FreshLoader;
import java.lang.reflect.Method;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.FutureTask;
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

  /** What there is no room for is forgotten. */
  @Test
  void framesBeyondTheRoom_areTakenBackAllTheSame() {
    Set<CallFrame> made = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = 0; i < 200; i++) {
      made.add(pool.take());
    }
    made.forEach(pool::give);
    assertThat(made).hasSize(200).contains(pool.take());
  }

  /** A call may be made while one of the same thread is under way, as in a callback. */
  @Test
  void callInsideACall_hasAFrameOfItsOwn_whichIsUsedAgain() {
    CallFrame outer = CallFrame.take();
    CallFrame inner = CallFrame.take();
    CallFrame innermost = CallFrame.take();
    assertThat(inner).isNotSameAs(outer);
    assertThat(innermost).isNotSameAs(inner).isNotSameAs(outer);
    innermost.leave();
    inner.leave();
    CallFrame again = CallFrame.take();
    assertThat(again).isSameAs(inner);
    again.leave();
    outer.leave();
    CallFrame next = CallFrame.take();
    assertThat(next).isSameAs(outer);
    next.leave();
  }

  /** There may be a million of them. */
  @Test
  void virtualThreads_shareAFewFrames() throws Exception {
    Class<?> frames = new FreshLoader().loadClass(CallFrame.class.getName()); // none is kept yet
    Method take = frames.getMethod("take");
    Method leave = frames.getMethod("leave");
    Object own = take.invoke(null); // of a thread that is not virtual, and keeps it
    leave.invoke(own);
    Set<Object> taken = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = 0; i < 1_000; i++) {
      FutureTask<Object> call =
          new FutureTask<>(() -> {
            Object frame = take.invoke(null);
            leave.invoke(frame);
            return frame;
          });
      Thread.ofVirtual().start(call);
      taken.add(call.get());
    }
    assertThat(taken).hasSizeLessThanOrEqualTo(128).doesNotContain(own);
  }
}
