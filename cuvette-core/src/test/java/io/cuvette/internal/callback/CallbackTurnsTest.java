package io.cuvette.internal.callback;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.internal.stream.DriverStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How many callbacks a stream has at once, and that one follows the other. */
@Timeout(60)
class CallbackTurnsTest {
  private static final int MOST = 16;
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final BooleanSupplier NEVER_ASKED =
      () -> {
        throw new AssertionError("waits");
      };

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final DriverStream stream = EngineMemory.of(cuda.allocate(512)).order().state;
  private final CallbackTurns turns = new CallbackTurns();

  @AfterEach
  void close() {
    cuda.close();
  }

  private void fill() {
    for (int i = 0; i < MOST; i++) {
      turns.enter(stream, NEVER_ASKED, PATIENCE_NANOS);
    }
  }

  private int looksUntilOneLeaves() {
    AtomicInteger looks = new AtomicInteger();
    BooleanSupplier leavesAtTheThirdLook =
        () -> {
          if (looks.incrementAndGet() == 3) {
            turns.leave(stream);
          }
          return false;
        };
    turns.enter(stream, leavesAtTheThirdLook, PATIENCE_NANOS);
    return looks.get();
  }

  @Test
  void seventeenthCallback_waitsUntilOneHasLeft() {
    fill();
    assertThat(looksUntilOneLeaves()).isEqualTo(3);
    for (int i = 0; i < MOST; i++) {
      turns.leave(stream);
    }
    fill();
    assertThat(looksUntilOneLeaves()).isEqualTo(3);
  }

  @Test
  void streamThatStandsStill_isWaitedForOnce_andAgainOnceItGoesOn() {
    fill();
    turns.enter(stream, () -> false, 1);
    turns.enter(stream, NEVER_ASKED, PATIENCE_NANOS);
    turns.leave(stream);
    turns.leave(stream);
    assertThat(looksUntilOneLeaves()).isEqualTo(3);
  }

  @Test
  void waitThatIsOfNoUse_ends_andCounts() {
    fill();
    turns.enter(stream, () -> true, PATIENCE_NANOS);
    turns.leave(stream);
    assertThat(looksUntilOneLeaves()).isEqualTo(3);
  }

  @Test
  void callbackThatHolds_followsTheOneBefore() {
    List<String> ran = new ArrayList<>();
    Callback one = new Callback(stream, _ -> {}, false);
    Callback two = new Callback(stream, _ -> {}, false);
    turns.inTurn(one, () -> ran.add("one"));
    turns.inTurn(two, () -> ran.add("two"));
    turns.inTurn(new Callback(stream, null, false), () -> ran.add("holds nothing"));
    assertThat(ran).containsExactly("one", "holds nothing");
    turns.returned(one);
    assertThat(ran).containsExactly("one", "holds nothing", "two");
    turns.returned(two);
    turns.inTurn(new Callback(stream, _ -> {}, false), () -> ran.add("three"));
    assertThat(ran).endsWith("three");
  }

  /** Who comes later has to run at once: nobody else would run it. */
  @Test
  void callbackThatHasReturned_isFollowedByNothing() {
    List<String> ran = new ArrayList<>();
    Callback one = new Callback(stream, _ -> {}, false);
    assertThat(one.follow(() -> ran.add("first"))).isTrue();
    assertThat(one.follow(() -> ran.add("second"))).isFalse();
    assertThat(ran).isEmpty();
    one.returned();
    assertThat(one.follow(() -> ran.add("late"))).isFalse();
    one.returned();
    assertThat(ran).containsExactly("first");
  }

  @Test
  void streamGoesOn_once() {
    List<String> ran = new ArrayList<>();
    Callback one = new Callback(stream, _ -> {}, false);
    one.whenReleased(() -> ran.add("one"));
    one.whenReleased(() -> ran.add("two"));
    assertThat(one.isReleased()).isFalse();
    one.release();
    one.release();
    assertThat(one.isReleased()).isTrue();
    assertThat(ran).containsExactly("one", "two");
  }

  /** Else a stream that lives on would keep what its last callback knows. */
  @Test
  void callbackThatReturned_isForgotten_butNotTheOneAfterIt() throws ReflectiveOperationException {
    Field last = CallbackTurns.class.getDeclaredField("last");
    last.setAccessible(true);
    Map<?, ?> kept = (Map<?, ?>) last.get(turns);
    Callback first = new Callback(stream, _ -> {}, false);
    Callback second = new Callback(stream, _ -> {}, false);
    turns.inTurn(first, () -> {});
    turns.inTurn(second, () -> {});
    turns.returned(first);
    assertThat(kept.containsValue(second)).isTrue();
    turns.returned(second);
    assertThat(kept).isEmpty();
  }
}
