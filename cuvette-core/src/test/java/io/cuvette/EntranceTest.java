package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.lifetime.Entrance;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who shuts an entrance waits for those inside, and is alone from then on. */
@Timeout(60)
class EntranceTest {
  private final Entrance entrance = new Entrance();

  @Test
  void afterShut_onlyWhoShutComesIn_andAfterCloseNobody() throws Exception {
    entrance.shut();
    assertThat(entrance.tryEnter()).isTrue();
    assertThat(elsewhere(entrance::tryEnter)).isFalse();
    assertThat(elsewhere(entrance::tryEnterAgain)).as("not as part of the other's step").isFalse();
    entrance.leave();
    assertThat(entrance.tryEnterAgain()).isTrue();
    entrance.leave();
    entrance.close();
    assertThat(entrance.tryEnter()).isFalse();
    assertThat(entrance.tryEnterAgain()).isFalse();
    assertThatThrownBy(() -> entrance.make(() -> 1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Cuda is closed");
  }

  @Test
  void shut_waitsForThoseInside_whoCanTakeInnerSteps() throws Exception {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      CountDownLatch begun = new CountDownLatch(1);
      assertThat(entrance.tryEnter()).isTrue();
      Future<?> shutting =
          threads.submit(() -> {
            begun.countDown();
            entrance.shut();
          });
      begun.await();
      while (entrance.tryEnter()) { // until it is shut
        entrance.leave();
        Thread.onSpinWait();
      }
      boolean innerStep = entrance.tryEnterAgain();
      if (innerStep) {
        entrance.leave();
      }
      boolean waited = !shutting.isDone();
      entrance.leave(); // before anything is asserted: else a failure would wait for ever
      shutting.get();
      assertThat(innerStep).isTrue();
      assertThat(waited).isTrue();
      assertThat(entrance.tryEnterAgain()).isFalse();
    }
  }

  private static boolean elsewhere(Callable<Boolean> question)
      throws InterruptedException, ExecutionException {
    try (ExecutorService thread = Executors.newVirtualThreadPerTaskExecutor()) {
      return thread.submit(question).get();
    }
  }
}
