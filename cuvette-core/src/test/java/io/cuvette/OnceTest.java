package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Once;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Which steps are done again after a failure, and which could free what is another's by then. */
class OnceTest {
  private final Once once = new Once();
  private final AtomicInteger done = new AtomicInteger();
  private final AtomicInteger notes = new AtomicInteger();

  private Runnable failing(CudaStatus status) {
    return () -> {
      done.incrementAndGet();
      throw new CudaException(status, "cuMemFree", "on purpose");
    };
  }

  @Test
  void step_isDoneOnce() {
    assertThat(once.isDone()).isFalse();
    once.run(done::incrementAndGet);
    once.run(done::incrementAndGet);
    once.free(done::incrementAndGet);
    assertThat(once.isDone()).isTrue();
    assertThat(done).hasValue(1);
  }

  @Test
  void failedStep_isTriedAgain_whateverItFailedWith() {
    for (CudaStatus status :
        new CudaStatus[] {CudaStatus.INVALID_VALUE, CudaStatus.LAUNCH_FAILED}) {
      assertThatThrownBy(() -> once.run(failing(status))).isInstanceOf(CudaException.class);
      assertThat(once.isDone()).isFalse();
    }
    once.run(done::incrementAndGet);
    assertThat(done).hasValue(3);
  }

  @Test
  void refusedFree_isMadeAgain() {
    assertThatThrownBy(() -> once.free(failing(CudaStatus.INVALID_VALUE)))
        .isInstanceOf(CudaException.class);
    assertThat(once.isDone()).isFalse();
    once.free(done::incrementAndGet);
    once.free(done::incrementAndGet);
    assertThat(done).hasValue(2);
  }

  @Test
  void freeThatFailedWithTheContext_isNotMadeAgain() {
    assertThatThrownBy(() -> once.free(failing(CudaStatus.LAUNCH_FAILED)))
        .isInstanceOf(CudaException.class);
    assertThat(once.isDone()).isTrue();
    once.free(done::incrementAndGet);
    assertThat(done).hasValue(1);
  }

  @Test
  void unregistering_isNotTriedAgain_whereOthersHaveDoneIt() {
    assertThatThrownBy(() -> once.free(failing(CudaStatus.HOST_MEMORY_NOT_REGISTERED)))
        .isInstanceOf(CudaException.class);
    assertThat(once.isDone()).isTrue();
  }

  @Test
  void errorOfAFree_letsItBeMadeAgain() {
    Error full = new OutOfMemoryError("on purpose");
    assertThatThrownBy(() ->
            once.free(() -> {
              throw full;
            }))
        .isSameAs(full);
    assertThat(once.isDone()).isFalse();
  }

  @Test
  void free_isNoted_ifItMayHaveWorked() {
    Once.free(done::incrementAndGet, notes::incrementAndGet);
    assertThat(notes).hasValue(1);
    assertThatThrownBy(() -> Once.free(failing(CudaStatus.LAUNCH_FAILED), notes::incrementAndGet))
        .isInstanceOf(CudaException.class);
    assertThat(notes).hasValue(2);
    assertThatThrownBy(() -> Once.free(failing(CudaStatus.INVALID_VALUE), notes::incrementAndGet))
        .isInstanceOf(CudaException.class);
    assertThat(notes).hasValue(2);
    assertThat(done).hasValue(3);
  }
}
