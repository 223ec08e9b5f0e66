package io.cuvette.ffm.foreign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.ForeignCalls;
import io.cuvette.ffm.LogProbe;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Functions of C that call Java, are called from it, and keep memory of arenas. */
class FfmForeignTest {
  private final ForeignCalls calls = new FfmForeign();

  @Test
  void heldArena_cannotBeClosed_untilItIsLetGo() {
    Arena arena = Arena.ofShared();
    MemorySegment memory = arena.allocate(8);
    Runnable first = calls.holdArena(memory);
    Runnable second = calls.holdArena(memory);
    assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
    first.run();
    assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
    assertThat(memory.scope().isAlive()).isTrue();
    second.run();
    second.run();
    arena.close();
    assertThat(memory.scope().isAlive()).isFalse();
  }

  /** Memory that is held for ever does not keep the process from ending. */
  @Test
  void threadThatHoldsAnArena_isADaemon() throws InterruptedException {
    try (Arena arena = Arena.ofShared()) {
      AtomicReference<Runnable> held = new AtomicReference<>();
      Thread none = new Thread(() -> held.set(calls.holdArena(arena.allocate(8))));
      none.setDaemon(false);
      none.start();
      none.join();
      assertThat(Thread.getAllStackTraces().keySet())
          .filteredOn(thread -> thread.getName().equals("cuvette-arena"))
          .isNotEmpty()
          .allMatch(Thread::isDaemon);
      held.get().run();
    }
  }

  /** It would seem to be held. */
  @Test
  void closedArena_isNotHeld() {
    Arena arena = Arena.ofShared();
    MemorySegment memory = arena.allocate(8);
    arena.close();
    assertThatThrownBy(() -> calls.holdArena(memory)).isInstanceOf(IllegalStateException.class);
    try (Arena confined = Arena.ofConfined()) {
      MemorySegment own = confined.allocate(8);
      assertThatThrownBy(() -> calls.holdArena(own)).isInstanceOf(WrongThreadException.class);
    }
    assertThatThrownBy(() -> calls.holdArena(null)).hasMessage("memory");
  }

  @Test
  void interruptedThread_holdsAndLetsGo_andKeepsTheInterrupt() {
    try (Arena arena = Arena.ofShared()) {
      Thread.currentThread().interrupt();
      calls.holdArena(arena.allocate(8)).run();
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void functions_getTheirArgument_andNothingThatTheyThrowComesOut() throws Exception {
    AtomicLong seen = new AtomicLong();
    long function = calls.callback(seen::set);
    calls.call(function, 1L << 40);
    assertThat(seen).hasValue(1L << 40);
    long throwing =
        calls.callback(argument -> {
          seen.set(argument);
          throw new IllegalStateException("inside of C");
        });
    try (LogProbe log = new LogProbe("io.cuvette.foreign")) {
      calls.call(throwing, -7);
      assertThat(log.told())
          .containsExactly(
              "SEVERE a function that was called from C threw:"
                  + " java.lang.IllegalStateException: inside of C");
    }
    assertThat(seen).hasValue(-7);
    assertThatThrownBy(() -> calls.call(0, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("function: 0");
    assertThatThrownBy(() -> calls.callback(null)).hasMessage("receiver");
  }
}
