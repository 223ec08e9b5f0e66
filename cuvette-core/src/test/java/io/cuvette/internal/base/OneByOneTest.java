package io.cuvette.internal.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads that do something about the same thing come one by one. */
@Timeout(60)
class OneByOneTest {
  private final OneByOne<String> turns = new OneByOne<>();
  private volatile boolean hasRun;

  private Thread another(String thing) {
    return Thread.ofPlatform().start(() -> turns.alone(thing, () -> hasRun = true));
  }

  private static void awaitRest(Thread thread) {
    Await.until(() -> !thread.isAlive() || thread.getState() == Thread.State.WAITING);
  }

  @Test
  void sameThing_isWaitedFor_andAnotherIsNot() throws InterruptedException {
    List<Thread> waiting = new ArrayList<>();
    String result =
        turns.alone(
            "one",
            () -> {
              turns.alone("two", () -> {});
              for (int i = 0; i < 2; i++) {
                Thread thread = another("one");
                awaitRest(thread);
                waiting.add(thread);
              }
              assertThat(waiting).allMatch(Thread::isAlive);
              assertThat(hasRun).isFalse();
              return "done";
            });
    assertThat(result).isEqualTo("done");
    for (Thread thread : waiting) {
      thread.join();
    }
    assertThat(hasRun).isTrue();
  }

  @Test
  void thingWhoseWorkFailed_isTheNextThreads() {
    Runnable failing =
        () -> {
          throw new IllegalStateException("the work's");
        };
    assertThatThrownBy(() -> turns.alone("one", failing)).hasMessage("the work's");
    turns.alone("one", () -> hasRun = true);
    assertThat(hasRun).isTrue();
  }
}
