package io.cuvette.instrument.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiPredicate;
import org.junit.jupiter.api.Test;

/** Which uses of the same bytes need an order, and which stand in for others. */
class AccessTest {

  /** Of each kind those for which something is so, such as {@code READ: WRITE USE}. */
  private static List<String> table(BiPredicate<Kind, Kind> isSo) {
    List<String> lines = new ArrayList<>();
    for (Kind one : Kind.values()) {
      StringBuilder line = new StringBuilder(one.name() + ":");
      for (Kind other : Kind.values()) {
        line.append(isSo.test(one, other) ? " " + other.name() : "");
      }
      lines.add(line.toString());
    }
    return lines;
  }

  @Test
  void usesOfWhichOneMayWrite_conflict_unlessBothAreOfKernelsOrNeedNoContent() {
    assertThat(table(Kind::conflictsWith))
        .containsExactly("READ: WRITE USE", "WRITE: READ WRITE USE", "USE: READ WRITE", "HOLD:");
  }

  @Test
  void laterUse_standsInForWhatConflictsWithNothingElse() {
    assertThat(table(Kind::standsInFor))
        .containsExactly(
            "READ: READ HOLD", "WRITE: READ WRITE USE HOLD", "USE: USE HOLD", "HOLD: HOLD");
    for (Kind later : Kind.values()) {
      for (Kind earlier : Kind.values()) {
        for (Kind next : Kind.values()) {
          boolean isLost = earlier.conflictsWith(next) && !later.conflictsWith(next);
          assertThat(later.standsInFor(earlier) && isLost)
              .as("%s after %s, before %s", later, earlier, next)
              .isFalse();
        }
      }
    }
  }

  @Test
  void ranges_overlap_ifTheyShareAByte() {
    Range middle = new Range(100, 10, Kind.READ, false);
    for (int from = 80; from <= 120; from++) {
      for (int bytes : new int[] {0, 1, 9, 10, 11, 40}) {
        Range other = new Range(from, bytes, Kind.READ, false);
        boolean shares = bytes > 0 && from < 110 && from + bytes > 100;
        if (bytes > 0) {
          assertThat(middle.overlaps(other)).as("%s", other).isEqualTo(shares);
          assertThat(other.overlaps(middle)).as("%s", other).isEqualTo(shares);
        }
      }
    }
  }

  private static Access access(Kind kind, boolean isLaunch) {
    CallTrace site = CallTrace.of("work");
    Lane lane = new Lane(0, "a stream", false, new Lane.Place(0, 0));
    return new Access(
        lane, 1, new Range(0, 8, kind, false), site, isLaunch ? (_, _, _) -> {} : null, List.of());
  }

  @Test
  void launch_meetsAnotherLaunch_andWorkThatConflicts() {
    Access launch = access(Kind.USE, true);
    assertThat(launch.mayMeet(access(Kind.USE, true))).isTrue();
    for (Kind kind : Kind.values()) {
      Access work = access(kind, false);
      boolean conflicts = kind.conflictsWith(Kind.USE);
      assertThat(launch.mayMeet(work)).as("%s later", kind).isEqualTo(conflicts);
      assertThat(work.mayMeet(launch)).as("%s earlier", kind).isEqualTo(conflicts);
      assertThat(work.mayMeet(access(Kind.WRITE, false))).as("%s without", kind).isFalse();
    }
  }
}
