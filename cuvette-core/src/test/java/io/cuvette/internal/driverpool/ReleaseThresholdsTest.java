package io.cuvette.internal.driverpool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.base.Await;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The threshold of a pool is raised with its first user here, and restored with the last. */
@Timeout(60)
class ReleaseThresholdsTest {
  private static final long KEEP_ALL = MemPoolAttribute.KEEP_ALL;

  private final ReleaseThresholds thresholds = ReleaseThresholds.of(true);
  private final Map<Long, Long> values = new ConcurrentHashMap<>(Map.of(1L, 5L, 2L, 7L));
  private final List<Long> trims = new ArrayList<>();
  private final CudaDriver driver = DriverProxy.of(this::call);
  private volatile Runnable atQuestion = () -> {};

  /** Whether the next value is refused. */
  private boolean refuses;

  private @Nullable Object call(Method method, Object[] arguments) {
    Long pool = (Long) arguments[0];
    return switch (method.getName()) {
      case "memPoolGetAttribute" -> {
        Runnable now = atQuestion;
        atQuestion = () -> {};
        now.run();
        yield values.get(pool);
      }
      case "memPoolSetAttribute" -> {
        if (refuses) {
          refuses = false;
          throw new CudaException(CudaStatus.NOT_PERMITTED, "cuMemPoolSetAttribute", "on purpose");
        }
        values.put(pool, (Long) arguments[2]);
        yield null;
      }
      case "memPoolTrimTo" -> {
        trims.add((Long) arguments[1]);
        yield null;
      }
      default -> throw new AssertionError(method);
    };
  }

  @Test
  void lastUser_restoresWhatTheFirstFound() {
    thresholds.raise(driver, 1);
    thresholds.raise(driver, 1);
    assertThat(values).containsEntry(1L, KEEP_ALL).containsEntry(2L, 7L);
    assertThat(thresholds.before(1)).isEqualTo(5);
    assertThat(thresholds.before(2)).isEqualTo(KEEP_ALL);
    thresholds.restore(driver, 1);
    assertThat(values).containsEntry(1L, KEEP_ALL);
    thresholds.restore(driver, 1);
    assertThat(values).containsEntry(1L, 5L);
    assertThat(trims).containsExactly(5L);
    assertThat(thresholds.before(1)).isEqualTo(KEEP_ALL);
  }

  @Test
  void poolThatIsForgotten_isLeftAsItIs() {
    thresholds.raise(driver, 1);
    thresholds.forget(1);
    assertThat(values).containsEntry(1L, KEEP_ALL);
    assertThat(thresholds.before(1)).isEqualTo(KEEP_ALL);
    values.put(1L, 9L);
    thresholds.raise(driver, 1);
    assertThat(thresholds.before(1)).as("as it is by now").isEqualTo(9);
  }

  @Test
  void userWhoseCallFails_isCountedAsBefore() {
    refuses = true;
    assertThatThrownBy(() -> thresholds.raise(driver, 1)).isInstanceOf(CudaException.class);
    assertThat(thresholds.before(1)).isEqualTo(KEEP_ALL);
    thresholds.raise(driver, 1);
    refuses = true;
    assertThatThrownBy(() -> thresholds.restore(driver, 1)).isInstanceOf(CudaException.class);
    assertThat(thresholds.before(1)).isEqualTo(5);
    thresholds.restore(driver, 1);
    assertThat(values).containsEntry(1L, 5L);
  }

  /** It would find the raised value, and restore that. */
  @Test
  void userThatComesWhileTheDriverIsAsked_waits_andOneOfAnotherPoolDoesNot()
      throws InterruptedException {
    List<Thread> waiting = new ArrayList<>();
    atQuestion =
        () -> {
          for (int i = 0; i < 2; i++) {
            Thread thread = Thread.ofPlatform().start(() -> thresholds.raise(driver, 1));
            Await.until(() -> thread.getState() == Thread.State.WAITING || !thread.isAlive());
            waiting.add(thread);
          }
          assertThat(waiting).allMatch(Thread::isAlive);
          thresholds.raise(driver, 2);
        };
    thresholds.raise(driver, 1);
    for (Thread thread : waiting) {
      thread.join();
    }
    assertThat(values).containsEntry(1L, KEEP_ALL).containsEntry(2L, KEEP_ALL);
    for (int i = 0; i < 3; i++) {
      assertThat(thresholds.before(1)).isEqualTo(5);
      thresholds.restore(driver, 1);
    }
    assertThat(values).containsEntry(1L, 5L);
    assertThat(Objects.requireNonNull(values.get(2L))).isEqualTo(KEEP_ALL);
  }

  /** Nothing is left of the one that failed. */
  @Test
  void userThatWaitedForOneThatFails_raisesItItself() throws InterruptedException {
    List<Thread> waiting = new ArrayList<>();
    atQuestion =
        () -> {
          Thread thread = Thread.ofPlatform().start(() -> thresholds.raise(driver, 1));
          Await.until(() -> thread.getState() == Thread.State.WAITING || !thread.isAlive());
          waiting.add(thread);
          refuses = true;
        };
    assertThatThrownBy(() -> thresholds.raise(driver, 1)).isInstanceOf(CudaException.class);
    waiting.getFirst().join();
    assertThat(values).containsEntry(1L, KEEP_ALL);
    assertThat(thresholds.before(1)).isEqualTo(5);
    thresholds.restore(driver, 1);
    assertThat(values).containsEntry(1L, 5L);
  }

  @Test
  void valueThatSomebodySetMeanwhile_stays() {
    thresholds.raise(driver, 1);
    values.put(1L, 8L);
    thresholds.restore(driver, 1);
    assertThat(values).containsEntry(1L, 8L);
    assertThat(trims).isEmpty();
  }

  @Test
  void poolsOfTheMachine_areKnownToAll_andSimulatedOnesToOneCuda() {
    assertThat(ReleaseThresholds.of(false)).isSameAs(ReleaseThresholds.of(false));
    assertThat(ReleaseThresholds.of(true)).isNotSameAs(ReleaseThresholds.of(true));
  }

  /** Also one whose thread has ended since. */
  @Test
  void stepOfAThread_isInTheWayOfNoOther() throws InterruptedException {
    List<Runnable> steps =
        List.of(
            () -> thresholds.before(1),
            () -> thresholds.raise(driver, 1),
            () -> thresholds.before(1),
            () -> thresholds.raise(driver, 1),
            () -> thresholds.restore(driver, 1),
            () -> thresholds.forget(1),
            () -> thresholds.before(1));
    for (Runnable step : steps) {
      Thread thread = Thread.ofPlatform().daemon().start(step);
      assertThat(thread.join(Duration.ofSeconds(40))).as("%d", steps.indexOf(step)).isTrue();
    }
    assertThat(thresholds.before(1)).isEqualTo(KEEP_ALL);
  }
}
