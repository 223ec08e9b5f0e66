package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.lang.ref.WeakReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AccessHistoryTest {
  private final KnownStreams known = new KnownStreams();
  private final AccessHistory history = new AccessHistory();

  private WeakReference<Access> use(Lane lane, Kind kind) {
    Range range = new Range(0x1000, 64, kind, false);
    Access access = new Access(lane, lane.next(), range, CallTrace.passing("use"));
    history.add(access, known.order);
    return new WeakReference<>(access);
  }

  private static void assertForgotten(WeakReference<Access> use) {
    for (int i = 0; i < 10 && use.get() != null; i++) {
      System.gc();
    }
    assertThat(use.get()).isNull();
  }

  /** A program may use the same bytes on one stream after the other for ever. */
  @Test
  void useThatIsFinished_isForgotten_onceAnotherStreamUsesItsBytes() {
    Lane first = known.create(0, 0x100, false, null);
    Lane second = known.create(0, 0x101, false, null);
    WeakReference<Access> write = use(first, Kind.WRITE);
    known.order.finish(known.workOf(first));
    WeakReference<Access> later = use(second, Kind.WRITE);
    assertForgotten(write);
    assertThat(later.get()).isNotNull();
    assertThat(history.unfinished(new Range(0x1000, 64, Kind.HOLD, false), known.order))
        .isSameAs(later.get());
  }

  @Test
  void useThatALaterOneIsNotOrderedBehind_isKept() {
    Lane first = known.create(0, 0x100, false, null);
    Lane second = known.create(0, 0x101, false, null);
    Lane third = known.create(0, 0x102, false, null);
    for (Kind kind : new Kind[] {Kind.WRITE, Kind.USE}) {
      WeakReference<Access> earlier = use(first, kind);
      WeakReference<Access> _ = use(second, kind);
      Range range = new Range(0x1000, 64, Kind.WRITE, false);
      third.seen.merge(known.workOf(second));
      assertThat(history.unordered(range, third, known.order)).isSameAs(earlier.get());
      known.order.finish(known.workOf(second));
      assertThat(history.unfinished(range, known.order)).isSameAs(earlier.get());
      known.order.finish(known.workOf(first));
      assertThat(history.unfinished(range, known.order)).isNull();
    }
  }

  @Test
  void useOfLaterBytes_isFound_behindThoseOfFinishedOnes() {
    Lane first = known.create(0, 0x100, false, null);
    Lane second = known.create(0, 0x101, false, null);
    for (Kind kind : new Kind[] {Kind.WRITE, Kind.READ}) {
      for (int i = 0; i < 4; i++) {
        Range range = new Range(0x1000 + 64 * i, 64, kind, false);
        Lane lane = i < 3 ? first : second;
        history.add(new Access(lane, lane.next(), range, CallTrace.passing("use")), known.order);
      }
      known.order.finish(known.workOf(first));
      Range all = new Range(0x1000, 256, Kind.WRITE, false);
      assertThat(history.unfinished(all, known.order)).extracting(Access::lane).isSameAs(second);
      assertThat(history.unordered(all, first, known.order)).isNotNull();
      assertThat(history.unordered(all, second, known.order)).isNull();
      assertThat(history.unfinished(new Range(0x1000, 192, Kind.WRITE, false), known.order))
          .isNull();
      known.order.finish(known.workOf(second));
    }
  }

  @Test
  void kernelsUse_isForgotten_onceALaterOneStandsInForIt() {
    Lane lane = known.create(0, 0x100, false, null);
    WeakReference<Access> use = use(lane, Kind.USE);
    assertThat(known.workOf(lane)).isNotNull(); // from now on its work is a later one
    WeakReference<Access> later = use(lane, Kind.USE);
    assertForgotten(use);
    assertThat(later.get()).isNotNull();
  }

  @Test
  void unfinishedUse_isKept_whenFinishedOnesOfItsBytesAreForgotten() {
    Lane first = known.create(0, 0x100, false, null);
    Lane second = known.create(0, 0x101, false, null);
    for (long i = 0; i < 1000; i++) {
      WeakReference<Access> _ = use(first, Kind.WRITE, i);
      WeakReference<Access> _ = use(second, Kind.WRITE, i);
    }
    known.order.finish(known.workOf(first));
    for (long i = 1000; i < 4000; i++) {
      WeakReference<Access> _ = use(second, Kind.WRITE, i);
    }
    Access left = history.unfinished(new Range(0, 64, Kind.HOLD, false), known.order);
    assertThat(left).extracting(Access::lane).isSameAs(second);
  }

  private WeakReference<Access> use(Lane lane, Kind kind, long place) {
    Range range = new Range(place * 128, 64, kind, false);
    Access access = new Access(lane, lane.next(), range, CallTrace.passing("use"));
    history.add(access, known.order);
    return new WeakReference<>(access);
  }

  /** A large buffer may be used piece by piece, and no piece twice. */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void useThatIsFinished_isForgotten_onceThereWereManyOfOtherBytes(Kind kind) {
    Lane lane = known.create(0, 0x100, false, null);
    WeakReference<Access> use = use(lane, kind, 0);
    known.order.finish(known.workOf(lane));
    for (long i = 1; i < 1000; i++) {
      WeakReference<Access> _ = use(lane, kind, i);
    }
    assertForgotten(use);
  }

  @Test
  void readsOfAStream_areForgotten_onceTheyAreFinishedAndAnotherReads() {
    Lane first = known.create(0, 0x100, false, null);
    WeakReference<Access> read = use(first, Kind.READ);
    known.order.finish(known.workOf(first));
    WeakReference<Access> later = use(known.create(0, 0x101, false, null), Kind.READ);
    assertForgotten(read);
    assertThat(later.get()).isNotNull();
  }

  /** Nothing can come between two writes of which nobody learned that the first was queued. */
  @ParameterizedTest
  @EnumSource(names = {"WRITE", "USE", "HOLD"})
  void useThatIsLikeTheOneBefore_isNotKept(Kind kind) {
    Lane lane = known.create(0, 0x100, false, null);
    Access use = access(lane, kind, 0, 64);
    history.add(use, known.order);
    WeakReference<Access> like = use(lane, kind, 0);
    assertForgotten(like);
    assertThat(history.unfinished(use.range(), known.order)).isSameAs(use);
  }

  @Test
  void ofAWriteAndARead_theWriteIsNamed() {
    Lane third = known.create(0, 0x102, false, null);
    Access read = access(known.create(0, 0x100, false, null), Kind.READ, 0, 64);
    Access write = access(known.create(0, 0x101, false, null), Kind.WRITE, 64, 64);
    history.add(read, known.order);
    history.add(write, known.order);
    Range all = new Range(0, 128, Kind.WRITE, false);
    assertThat(history.race(all, third, known.order)).isSameAs(write);
    assertThat(history.unfinished(all, known.order)).isSameAs(write);
    assertThat(history.race(new Range(0, 65, Kind.READ, false), third, known.order))
        .isSameAs(write);
    assertThat(history.race(read.range(), third, known.order)).isNull();
  }

  private static Access access(Lane lane, Kind kind, long address, long bytes) {
    return new Access(
        lane, lane.next(), new Range(address, bytes, kind, false), CallTrace.passing("use"));
  }
}
