package io.cuvette.ffm.part;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The memory of signals is never freed: without using it again there would be no end of it. */
class SignalTest {
  /** More than other tests have left. */
  private static final int ROUNDS = 5_000;

  private final MethodHandle raise =
      NativeAccess.function("sem_post", FunctionDescriptor.of(Layouts.INT, Layouts.POINTER));

  @Test
  void memoryOfASignalThatWasRaised_isUsedAgain() throws Throwable {
    assumeTrue(Signal.RAISE != 0, "a system with semaphores");
    Set<Long> seen = new HashSet<>();
    for (int i = 0; i < ROUNDS; i++) {
      Signal signal = Signal.take();
      seen.add(signal.address());
      assertThat(signal.isRaised()).isFalse();
      assertThat((int) raise.invokeExact(signal.address())).isZero();
      assertThat(signal.isRaised()).isTrue();
    }
    assertThat(seen).hasSizeLessThan(ROUNDS);
  }

  @Test
  void memoryOfASignalThatTheDriverNeverGot_isUsedAgain() {
    assumeTrue(Signal.RAISE != 0, "a system with semaphores");
    Set<Long> seen = new HashSet<>();
    for (int i = 0; i < ROUNDS; i++) {
      Signal signal = Signal.take();
      seen.add(signal.address());
      signal.unused();
    }
    assertThat(seen).hasSizeLessThan(ROUNDS);
  }
}
