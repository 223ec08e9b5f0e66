package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.instrument.internal.memory.TouchedBytes.Conflict;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TouchedBytesTest {
  private static final int PAGES = 3;
  private static final long BASE = 0x7000;

  private final TouchedBytes first = new TouchedBytes(0);
  private final TouchedBytes second = new TouchedBytes(0);

  @Test
  void conflict_isFound_behindPagesThatBothOnlyRead() {
    for (int page = 0; page < 16; page++) {
      first.touched(page * 4096L, 4, Touch.READ);
      second.touched(page * 4096L, 4, Touch.READ);
    }
    assertThat(first.conflict(second)).isNull();
    for (int page = 0; page < 16; page++) {
      TouchedBytes writer = new TouchedBytes(0);
      for (int each = 0; each < 16; each++) {
        writer.touched(each * 4096L, 1, Touch.READ);
      }
      writer.touched(page * 4096L + 3, 1, Touch.WRITE);
      assertThat(first.conflict(writer))
          .isEqualTo(new Conflict(page * 4096L + 3, Touch.READ, Touch.WRITE));
    }
  }

  /** A node may run for one launch while the next one is on its way to the driver. */
  @Test
  void run_notesALaunch_ofWhichNothingWasNoted_andNoOther() {
    AtomicInteger noted = new AtomicInteger();
    Runnable launch = noted::incrementAndGet;
    first.expect();
    first.begins(launch);
    first.touched(BASE, 4, Touch.READ);
    assertThat(noted).as("the run of the launch before").hasValue(0);
    first.ran();
    first.touched(BASE, 4, Touch.READ);
    assertThat(noted).hasValue(1);
    first.expect();
    first.touched(BASE, 4, Touch.READ);
    assertThat(noted).as("it is noted").hasValue(1);
    first.ran();
    first.ran(); // once more than was expected, as in a loop
    first.expect();
    first.touched(BASE, 4, Touch.READ);
    assertThat(noted).hasValue(1);
    first.ran();
    first.ends(launch);
    first.touched(BASE, 4, Touch.READ);
    assertThat(noted).as("its call is back").hasValue(1);
  }

  @Test
  void conflict_isAtItsByte_whereverInAPage() {
    for (int at = 0; at < 4096; at++) {
      TouchedBytes writer = new TouchedBytes(0);
      TouchedBytes reader = new TouchedBytes(0);
      writer.touched(0x5000 + at, 1, Touch.WRITE);
      reader.touched(0x5000 + at, 1, Touch.READ);
      assertThat(writer.conflict(reader))
          .isEqualTo(new Conflict(0x5000 + at, Touch.WRITE, Touch.READ));
    }
  }

  /** As of a node that takes the next place of a ring in each launch. */
  @Test
  void whatIsTouchedInSomeRunsAlone_isNoConflict() {
    first.touched(0x5000, 4, Touch.WRITE);
    first.touched(0x5100, 4, Touch.WRITE);
    first.ran();
    second.touched(0x5100, 4, Touch.READ);
    assertThat(first.conflict(second)).isNotNull();
    first.touched(0x5000, 4, Touch.WRITE);
    first.touched(0x5200, 4, Touch.WRITE);
    assertThat(first.conflict(second)).as("the second run is not over").isNotNull();
    first.ran();
    assertThat(first.conflict(second)).isNull();
    assertThat(second.conflict(first)).isNull();

    second.touched(0x5000, 4, Touch.READ);
    assertThat(first.conflict(second)).isEqualTo(new Conflict(0x5000, Touch.WRITE, Touch.READ));
    first.ran();
    assertThat(first.conflict(second)).as("a run touched nothing").isNull();
    assertThat(first.outside(at -> at == 0x5200 ? at : at + 1)).isEqualTo(0x5200);
  }

  @Test
  void bytesSideBySide_areNoConflict() {
    first.touched(8, 4, Touch.WRITE);
    second.touched(12, 4, Touch.WRITE);
    second.touched(4, 4, Touch.ATOMIC);
    assertThat(first.conflict(second)).isNull();
    second.touched(11, 1, Touch.ATOMIC);
    assertThat(first.conflict(second)).isEqualTo(new Conflict(11, Touch.WRITE, Touch.ATOMIC));
  }

  @Test
  void pagesThatOnlyOneTouched_areNoConflict() {
    first.touched(0x1000, 4, Touch.WRITE);
    first.touched(0x2000, 4, Touch.WRITE);
    second.touched(0x3000, 4, Touch.WRITE);
    assertThat(first.conflict(second)).isNull();
    assertThat(second.conflict(first)).isNull();
    second.touched(0x2002, 1, Touch.READ);
    assertThat(first.conflict(second)).isEqualTo(new Conflict(0x2002, Touch.WRITE, Touch.READ));
  }

  @Test
  void pagesBeyondTheMost_areLeftOut() {
    int most = 2048;
    for (int page = 0; page <= most; page++) {
      first.touched(page * 4096L, 4, Touch.WRITE);
    }
    second.touched(most * 4096L, 4, Touch.WRITE);
    assertThat(first.conflict(second)).isNull();
    second.touched((most - 1) * 4096L, 4, Touch.WRITE);
    assertThat(first.conflict(second))
        .isEqualTo(new Conflict((most - 1) * 4096L, Touch.WRITE, Touch.WRITE));
  }

  /**
   * Bits of what a launch did to each byte: 1 for a read, 2 for a write, 4 for an atomic change.
   */
  private static int[] randomTouches(Random random, TouchedBytes into) {
    int[] model = new int[PAGES * 4096];
    for (int i = 0; i < 40; i++) {
      int bytes = 1 << random.nextInt(4);
      int at = random.nextInt(model.length / bytes) * bytes;
      Touch touch = Touch.values()[random.nextInt(3)];
      into.touched(BASE + at, bytes, touch);
      for (int each = at; each < at + bytes; each++) {
        model[each] |= 1 << touch.ordinal();
      }
    }
    return model;
  }

  private static int bit(Touch touch) {
    return 1 << touch.ordinal();
  }

  private static void assertConflict(@Nullable Conflict conflict, int[] one, int[] other) {
    int write = bit(Touch.WRITE);
    boolean expected = false;
    for (int i = 0; i < one.length; i++) {
      expected |= one[i] != 0 && other[i] != 0 && ((one[i] | other[i]) & write) != 0;
    }
    assertThat(conflict != null).isEqualTo(expected);
    if (conflict != null) {
      int at = (int) (conflict.address() - BASE);
      assertThat(one[at] & bit(conflict.first())).isNotZero();
      assertThat(other[at] & bit(conflict.second())).isNotZero();
      assertThat((bit(conflict.first()) | bit(conflict.second())) & write).isNotZero();
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
  void conflict_isThatOfTwoArrays_alsoBesideOtherWork(long seed) {
    Random random = new Random(seed);
    Lane lane = new KnownStreams().create(0, 0x100, false, null);
    for (int round = 0; round < 40; round++) {
      TouchedBytes launch = new TouchedBytes(0);
      TouchedBytes other = new TouchedBytes(0);
      int[] touched = randomTouches(random, launch);
      int[] others = randomTouches(random, other);
      assertConflict(launch.conflict(other), touched, others);
      assertConflict(other.conflict(launch), others, touched);
      int from = random.nextInt(touched.length);
      int bytes = 1 + random.nextInt(Math.min(600, touched.length - from));
      for (Kind kind : Kind.values()) {
        Range range = new Range(BASE + from, bytes, kind, false);
        TouchedBytes work = launch.of(new Access(lane, 1, range, CallTrace.passing("copy")));
        int[] all = new int[touched.length];
        for (int i = from; i < from + bytes; i++) {
          boolean isRead = kind == Kind.READ && (touched[i] & bit(Touch.ATOMIC)) == 0;
          all[i] = bit(isRead ? Touch.READ : Touch.WRITE);
        }
        assertConflict(launch.conflict(work), touched, all);
      }
    }
  }
}
