package io.cuvette.internal.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Handles that are kept are one user's at a time, and destroyed once. */
class SpareHandlesTest {
  private static final int MOST = 64;

  private final List<Long> destroyed = new ArrayList<>();

  /** What the next destructions fail with. */
  private final List<RuntimeException> failing = new ArrayList<>();

  private long made;
  private final SpareHandles spares = new SpareHandles(() -> ++made, this::destroy);

  private void destroy(long handle) {
    if (!failing.isEmpty()) {
      throw failing.removeFirst();
    }
    destroyed.add(handle);
  }

  @Test
  void handleThatIsGivenBack_isTheNextUsers_andNoOthers() {
    assertThat(spares.take()).isEqualTo(1);
    assertThat(spares.take()).isEqualTo(2);
    spares.give(1);
    spares.give(2);
    assertThat(spares.count()).isEqualTo(2);
    assertThat(Set.of(spares.take(), spares.take())).containsExactlyInAnyOrder(1L, 2L);
    assertThat(spares.count()).isZero();
    assertThat(spares.take()).isEqualTo(3);
    assertThat(destroyed).isEmpty();
  }

  @Test
  void moreThanAreKept_areDestroyed() {
    for (long handle = 1; handle <= MOST + 2; handle++) {
      spares.give(handle);
    }
    assertThat(spares.count()).isEqualTo(MOST);
    assertThat(destroyed).containsExactly(MOST + 1L, MOST + 2L);
    Set<Long> taken = new HashSet<>();
    for (int i = 0; i < MOST; i++) {
      taken.add(spares.take());
    }
    assertThat(taken).hasSize(MOST);
    assertThat(made).as("none was made").isZero();
  }

  @Test
  void allAreDestroyedAtTheEnd_once() {
    for (long handle = 1; handle <= MOST; handle++) {
      spares.give(handle);
    }
    Failures failures = new Failures();
    spares.destroyAll(failures);
    spares.destroyAll(failures);
    failures.throwFirst();
    assertThat(destroyed).hasSize(MOST).doesNotHaveDuplicates();
    assertThat(spares.count()).isZero();
  }

  private static CudaException refusal(CudaStatus status) {
    return new CudaException(status, "cuEventDestroy", "on purpose");
  }

  @Test
  void handleThatIsRefusedOnce_isDestroyedAtOnce_andThatIsTold() {
    spares.give(7);
    failing.add(refusal(CudaStatus.NOT_PERMITTED));
    Failures failures = new Failures();
    spares.destroyAll(failures);
    assertThatThrownBy(failures::throwFirst)
        .isInstanceOf(CudaException.class)
        .hasNoSuppressedExceptions();
    assertThat(destroyed).containsExactly(7L);
    assertThat(spares.count()).isZero();
  }

  @Test
  void handleThatIsRefusedTwice_isKeptForTheNextTry() {
    spares.give(7);
    failing.add(refusal(CudaStatus.NOT_PERMITTED));
    failing.add(refusal(CudaStatus.NOT_SUPPORTED));
    Failures failures = new Failures();
    spares.destroyAll(failures);
    assertThatThrownBy(failures::throwFirst)
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
    assertThat(spares.count()).isEqualTo(1);
    spares.destroyAll(new Failures());
    assertThat(destroyed).containsExactly(7L);
  }

  /** By now the handle may be something else's. */
  @Test
  void handleThatMayBeDestroyed_isNotTriedAgain() {
    for (int before = 0; before < 2; before++) {
      spares.give(7);
      for (int i = 0; i < before; i++) {
        failing.add(refusal(CudaStatus.NOT_PERMITTED));
      }
      failing.add(refusal(CudaStatus.ILLEGAL_ADDRESS));
      Failures failures = new Failures();
      spares.destroyAll(failures);
      assertThatThrownBy(failures::throwFirst).isInstanceOf(CudaException.class);
      assertThat(failing).isEmpty();
      assertThat(spares.count()).isZero();
    }
    assertThat(destroyed).isEmpty();
  }
}
