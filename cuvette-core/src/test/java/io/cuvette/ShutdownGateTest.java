package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.internal.lifetime.ShutdownGate;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who shuts an gate waits for those inside, and is alone from then on. */
@Timeout(60)
class ShutdownGateTest {
  private final ShutdownGate gate = new ShutdownGate();

  @Test
  void afterShut_onlyWhoShutComesIn_andAfterCloseNobody() throws Exception {
    gate.shut();
    assertThat(gate.tryEnter()).isTrue();
    assertThat(elsewhere(gate::tryEnter)).isFalse();
    assertThat(elsewhere(gate::tryEnterAgain)).as("not as part of the other's step").isFalse();
    gate.leave();
    assertThat(gate.tryEnterAgain()).isTrue();
    gate.leave();
    assertThat(elsewhere(gate::tryEnter)).isFalse();
    assertThat(elsewhere(gate::tryEnterAgain)).as("nobody was counted").isFalse();
    gate.shut();
    gate.close();
    assertThat(gate.tryEnter()).isFalse();
    assertThat(gate.tryEnterAgain()).isFalse();
    assertThatThrownBy(() -> gate.make(() -> 1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Cuda is closed");
    assertThatThrownBy(() -> gate.ask(() -> fail("asked")))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Cuda is closed");
    assertThat(ShutdownGate.isOutside()).isTrue();
  }

  /** So that an assertion finds code of the user that would run inside of a step. */
  @Test
  void threadIsOutside_onceItHasLeftItsOuterStep() throws Exception {
    assumeTrue(ShutdownGate.class.desiredAssertionStatus(), "only then are steps counted");
    ShutdownGate other = new ShutdownGate();
    assertThat(ShutdownGate.isOutside()).isTrue();
    boolean isInside =
        gate.make(() -> {
          boolean before = ShutdownGate.isOutside();
          other.run(() -> assertThat(ShutdownGate.isOutside()).isFalse());
          return !before && !gate.ask(ShutdownGate::isOutside) && !ShutdownGate.isOutside();
        });
    assertThat(isInside).isTrue();
    assertThat(ShutdownGate.isOutside()).isTrue();
    assertThat(gate.tryEnter()).isTrue();
    assertThat(ShutdownGate.isOutside()).isFalse();
    assertThat(elsewhere(ShutdownGate::isOutside)).as("another thread").isTrue();
    gate.leave();
    assertThat(ShutdownGate.isOutside()).isTrue();
  }

  @Test
  void shut_waitsForThoseInside_whoCanTakeInnerSteps() throws Exception {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      CountDownLatch begun = new CountDownLatch(1);
      assertThat(gate.tryEnter()).isTrue();
      Future<?> shutting =
          threads.submit(() -> {
            begun.countDown();
            gate.shut();
          });
      begun.await();
      while (gate.tryEnter()) { // until it is shut
        gate.leave();
        Thread.onSpinWait();
      }
      boolean innerStep = gate.tryEnterAgain();
      if (innerStep) {
        gate.leave();
      }
      boolean waited = !shutting.isDone();
      gate.leave(); // before anything is asserted: else a failure would wait for ever
      shutting.get();
      assertThat(innerStep).isTrue();
      assertThat(waited).isTrue();
      assertThat(gate.tryEnterAgain()).isFalse();
    }
  }

  private static boolean elsewhere(Callable<Boolean> question)
      throws InterruptedException, ExecutionException {
    try (ExecutorService thread = Executors.newVirtualThreadPerTaskExecutor()) {
      return thread.submit(question).get();
    }
  }

  @Test
  void stepThatHasRun_keepsNobodyFromShutting() {
    gate.run(() -> {});
    assertThat(gate.<Integer>make(() -> 1)).isEqualTo(1);
    gate.shut();
    gate.run(() -> {});
    gate.close();
    gate.run(() -> fail("shut"));
  }
}
