package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.pool.Shortage;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The steps out of a shortage, one after the other, and when upstream is asked again. */
@Timeout(60)
class ShortageStepsTest {
  /** For longer than that nothing is asked again. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(2);

  private Refusals refusals = new Refusals();
  private final List<String> steps = new ArrayList<>();

  /** Takes the steps again if the thread that took them had no processor for too long. */
  private void inTime(Runnable test) {
    boolean isOver = false;
    for (int left = 5; !isOver; left--) {
      long start = System.nanoTime();
      try {
        test.run();
        isOver = true;
      } catch (AssertionError | RuntimeException e) {
        if (left == 0 || System.nanoTime() - start < PATIENCE_NANOS) {
          throw e;
        }
        refusals = new Refusals();
        steps.clear();
      }
    }
  }

  /** Finds nothing and has nothing, but for what a test says. */
  private class Steps extends Shortage<String> {
    Steps() {
      super(new LeakTracker(LeakLevel.OFF, _ -> {}, () -> {}), refusals);
    }

    @Override
    public String inTurn(Supplier<String> steps) {
      return steps.get();
    }

    @Override
    public boolean isBeyondLimit() {
      return false;
    }

    @Override
    public @Nullable String search() {
      steps.add(refusals.isWorthAsking() ? "ask" : "search");
      refusals.add(new IllegalStateException("no"));
      return null;
    }

    @Override
    public long releaseCached() {
      steps.add("release");
      return 0;
    }

    @Override
    public @Nullable String awaitOnce() {
      steps.add(refusals.isWorthAsking() ? "await and ask" : "await");
      return null;
    }

    @Override
    public boolean mayHave() {
      return false;
    }

    @Override
    public long takes() {
      return 0;
    }

    @Override
    public boolean hasForgotten() {
      return false;
    }

    @Override
    public RuntimeException outOfMemory(RecoveryStep step) {
      return new IllegalStateException("out after " + step);
    }
  }

  @Test
  void eachStep_isTakenOnce_andUpstreamAskedOnceBeforeTheLast() {
    assertThatThrownBy(new Steps()::run).hasMessage("out after RECLAIM");
    assertThat(steps).containsExactly("ask", "release", "search", "await", "await and ask");
  }

  @Test
  void upstreamIsAskedAgain_afterAReleaseAndAfterPressureThatGaveSomething() {
    inTime(this::askUpstreamAgain);
  }

  private void askUpstreamAgain() {
    Steps giving =
        new Steps() {
          @Override
          public long releaseCached() {
            return super.releaseCached() + 1;
          }

          @Override
          public boolean pressure() {
            boolean isFirst = !steps.contains("pressure");
            steps.add("pressure");
            return isFirst;
          }
        };
    assertThatThrownBy(giving::run).hasMessage("out after RECLAIM");
    assertThat(steps)
        .startsWith("ask", "release", "ask", "pressure", "ask", "release", "ask", "await")
        .containsSequence("await", "pressure", "await");
  }

  /** What it gave is waited for first: it may be in use by streams yet. */
  @Test
  void listenersAreAskedAgain_asLongAsTheyGive() {
    inTime(this::askListenersAgain);
  }

  private void askListenersAgain() {
    Steps giving =
        new Steps() {
          private int asked;

          @Override
          public boolean pressure() {
            steps.add("pressure");
            return ++asked <= 3;
          }

          @Override
          public @Nullable String awaitOnce() {
            return asked == 3 ? "found" : super.awaitOnce();
          }
        };
    assertThat(giving.run()).isEqualTo("found");
    assertThat(steps)
        .filteredOn(step -> step.equals("pressure") || step.startsWith("await"))
        .containsExactly("pressure", "await", "pressure", "await", "pressure");
  }

  /** One that says so and frees nothing. */
  @Test
  void listenersThatAlwaysSayTheyGave_areNotAskedForEver() {
    Steps lying =
        new Steps() {
          @Override
          public boolean pressure() {
            steps.clear();
            return true;
          }
        };
    assertThatThrownBy(lying::run).hasMessage("out after RECLAIM");
  }

  /** It would be looked for once more, and the first of it would be lost. */
  @Test
  void whatWasFound_isTheEndOfTheSteps() {
    for (int tries = 1; tries <= 2; tries++) {
      int found = tries;
      steps.clear();
      Steps finding =
          new Steps() {
            private int searches;

            @Override
            public @Nullable String search() {
              String nothing = super.search();
              return ++searches == found ? "found" : nothing;
            }

            @Override
            public boolean pressure() {
              steps.add("pressure");
              return true;
            }
          };
      assertThat(finding.run()).isEqualTo("found");
      assertThat(steps).hasSize(found == 1 ? 1 : 3).doesNotContain("pressure");
    }
  }

  /** Other threads were faster, and there is more. */
  @Test
  void whatOthersTook_isWaitedForAgain_asLongAsThereIsMore() {
    inTime(this::waitForOthersAgain);
  }

  private void waitForOthersAgain() {
    var others =
        new Steps() {
          private int waits;

          @Override
          public @Nullable String awaitOnce() {
            return ++waits == 3 ? "found" : super.awaitOnce();
          }

          @Override
          public long takes() {
            return waits;
          }

          @Override
          public boolean mayHave() {
            return true;
          }
        };
    assertThat(others.run()).isEqualTo("found");
    assertThat(steps).containsExactly("ask", "release", "search", "await", "await");
  }

  @Test
  void whatOthersTook_isNotWaitedForAgain_ifNothingIsLeft() {
    var others =
        new Steps() {
          private int waits;

          @Override
          public @Nullable String awaitOnce() {
            waits++;
            return super.awaitOnce();
          }

          @Override
          public long takes() {
            return waits;
          }
        };
    assertThatThrownBy(others::run).hasMessage("out after RECLAIM");
    assertThat(steps).filteredOn(step -> step.startsWith("await")).hasSize(2);
  }

  @Test
  void whatNobodyTook_isNotWaitedForAgain_thoughThereIsMore() {
    Steps alone =
        new Steps() {
          @Override
          public boolean mayHave() {
            return true;
          }
        };
    assertThatThrownBy(alone::run).hasMessage("out after RECLAIM");
    assertThat(steps).filteredOn(step -> step.startsWith("await")).hasSize(2);
  }

  @Test
  void whatTheLimitForbids_isOutAtOnce() {
    Steps beyond =
        new Steps() {
          @Override
          public boolean isBeyondLimit() {
            return true;
          }
        };
    assertThatThrownBy(beyond::run).hasMessage("out after LIMIT");
    assertThat(steps).isEmpty();
  }
}
