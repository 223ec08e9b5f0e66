package io.cuvette.internal.fence;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What is known of the captures that used memory, beside a plain list of all of them. */
class CapturedTest {
  private static final int ROUNDS = 300;

  /** All that was ever noted, and nothing forgotten. */
  private static final class Model {
    private final List<Capture> all = new ArrayList<>();
    private boolean elsewhere;
    private @Nullable Capture last;

    void note(Capture capture, boolean isElsewhere, boolean isLast) {
      all.add(capture);
      elsewhere |= isElsewhere;
      last = isLast ? capture : last;
    }

    List<Capture> open() {
      return all.stream().distinct().filter(capture -> !capture.isDone()).toList();
    }
  }

  private static void check(Captured captured, Model model) {
    assertThat(captured.open()).containsExactlyInAnyOrderElementsOf(model.open());
    assertThat(captured.elsewhere()).isEqualTo(model.elsewhere);
    assertThat(captured.last()).isSameAs(model.last);
  }

  @Test
  void whatIsOpen_isWhatWasNotedAndGoesOn_eachOnce() {
    SplittableRandom random = new SplittableRandom(7);
    for (int round = 0; round < ROUNDS; round++) {
      List<Capture> captures = IntStream.range(0, 4).mapToObj(_ -> Capture.built()).toList();
      Captured captured = Captured.NEVER;
      Model model = new Model();
      for (int step = 0; step < 12; step++) {
        Capture capture = captures.get(random.nextInt(captures.size()));
        boolean isElsewhere = random.nextInt(4) == 0;
        boolean isLast = random.nextInt(4) == 0;
        if (random.nextInt(5) == 0 && !capture.isDone()) {
          capture.letGo();
        } else {
          captured = captured.with(capture, isElsewhere, isLast);
          model.note(capture, isElsewhere, isLast);
          assertThat(captured.by())
              .as("room for those alone")
              .hasSizeLessThanOrEqualTo(model.open().size() + (capture.isDone() ? 1 : 0));
          assertThat(captured.by()).doesNotHaveDuplicates();
        }
        check(captured, model);
      }
    }
  }

  /** Else it is noted for nothing each time, or not at all. */
  @Test
  void whatIsNotedAlready_isWhatChangesNothing() {
    Capture one = Capture.built();
    Capture other = Capture.built();
    boolean[] both = {false, true};
    for (Capture before : List.of(one, other)) {
      for (boolean wasElsewhere : both) {
        for (boolean wasLast : both) {
          Captured captured = Captured.NEVER.with(before, wasElsewhere, wasLast);
          for (boolean isElsewhere : both) {
            for (boolean isLast : both) {
              boolean known =
                  before == one && (wasElsewhere || !isElsewhere) && (wasLast || !isLast);
              assertThat(captured.has(one, isElsewhere, isLast)).isEqualTo(known);
            }
          }
        }
      }
    }
    assertThat(Captured.NEVER.has(one, false, false)).isFalse();
    Captured last = Captured.NEVER.with(other, false, true).with(one, false, false);
    assertThat(last.has(one, false, true)).as("it was another").isFalse();
    Captured captured = Captured.NEVER.with(one, true, true);
    one.letGo();
    assertThat(captured.has(one, false, false)).as("of one that is over").isFalse();
  }
}
