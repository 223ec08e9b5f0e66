package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is asked of the uses of a block, of random ones, answered by a list of all that were. */
class AccessHistoryModelTest {
  private static final long BASE = 0x1000;
  private static final int KEPT_LAUNCHES = 32;
  private static final CallTrace SITE = CallTrace.passing("use");
  private static final CallTrace ELSEWHERE = CallTrace.passing("allocate");

  private final KnownStreams known = new KnownStreams();
  private final AccessHistory history = new AccessHistory();
  private final List<Access> all = new ArrayList<>();
  private final List<Lane> lanes = new ArrayList<>();
  private int found;
  private int nothing;

  /** Of few long ranges, and of many short ones, of which those between two waits are alike. */
  @ParameterizedTest
  @CsvSource({
    "1, 512, 128, false",
    "2, 512, 128, false",
    "3, 512, 128, true",
    "4, 512, 128, true",
    "5, 8192, 1, false",
    "6, 8192, 1, false",
    "7, 8192, 1, true"
  })
  void everyAnswer_isThatOfAListOfAll(long seed, int bytes, int grain, boolean told) {
    Random random = new Random(seed);
    for (int i = 0; i < 4; i++) {
      lanes.add(known.create(0, 0x100 + i, false, null));
    }
    for (int step = 0; step < 500; step++) {
      int kind = random.nextInt(100);
      Lane lane = lanes.get(random.nextInt(lanes.size()));
      if (kind < 85) {
        use(lane, random, bytes, grain, told);
      } else if (kind < 97) {
        lanes.get(random.nextInt(lanes.size())).seen.merge(known.workOf(lane));
      } else {
        known.order.finish(known.workOf(lane));
      }
      check(range(random, bytes, grain), lanes.get(random.nextInt(lanes.size())));
      assertMeets(new Access(known.order.host, 0, range(random, bytes, grain), SITE));
    }
    assertThat(found).isGreaterThan(100);
    assertThat(nothing).isGreaterThan(100);
  }

  private static Range range(Random random, int bytes, int grain) {
    int from = random.nextInt(bytes / grain) * grain;
    int most = Math.min(grain == 1 ? 40 : bytes, bytes - from);
    Kind kind = Kind.values()[random.nextInt(Kind.values().length)];
    return new Range(BASE + from, 1 + random.nextInt(most), kind, false);
  }

  private void use(Lane lane, Random random, int bytes, int grain, boolean told) {
    Range range = range(random, bytes, grain);
    LaunchWatcher watcher = told && range.kind() == Kind.USE ? new TouchedBytes(0) : null;
    Access access = new Access(lane, lane.next(), range, SITE, watcher, List.of());
    if (told) {
      assertMeets(access);
    }
    history.add(access, known.order);
    all.add(access);
  }

  private void check(Range range, Lane lane) {
    Kind kind = range.kind();
    Predicate<Access> unfinished = use -> !known.order.isFinished(use);
    Predicate<Access> unordered = use -> !known.order.isBefore(use, lane);
    Predicate<Access> conflicting = use -> use.conflictsWith(kind);
    Predicate<Access> writing =
        use -> use.range().kind() == Kind.WRITE || use.range().kind() == Kind.USE;
    assertFound(
        "race",
        history.race(range, lane, known.order),
        range,
        conflicting.and(unordered).and(use -> use.watcher() == null));
    assertFound("unfinished", history.unfinished(range, known.order), range, unfinished);
    assertFound("unordered", history.unordered(range, lane, known.order), range, unordered);
    assertFound(
        "host",
        history.besideHost(range, known.order),
        range,
        conflicting.and(unfinished).and(use -> use.watcher() == null));
    assertFound(
        "write",
        history.unfinishedWrite(range, ELSEWHERE, known.order),
        range,
        writing.and(unfinished));
    assertThat(history.unfinishedWrite(range, SITE, known.order)).isNull();
  }

  private void assertFound(
      String what, @Nullable Access answer, Range range, Predicate<Access> condition) {
    Predicate<Access> matches = condition.and(use -> use.range().overlaps(range));
    boolean expected = all.stream().anyMatch(matches);
    assertThat(answer != null).as("%s %s after %d", what, range, all.size()).isEqualTo(expected);
    assertThat(answer == null || isLikeOne(matches, answer)).as("%s %s", what, answer).isTrue();
    found += expected ? 1 : 0;
    nothing += expected ? 0 : 1;
  }

  /** Of pieces that are alike one use is as good as the other. */
  private boolean isLikeOne(Predicate<Access> matches, Access answer) {
    return all.stream().filter(matches).anyMatch(answer::isLike);
  }

  /** Of each byte the last launches that matter, behind the last write of it. */
  private void assertMeets(Access access) {
    List<Access> met = new ArrayList<>();
    boolean late = all.size() % 2 == 0;
    history.meeting(access, late, known.order, met::add);
    Range range = access.range();
    Predicate<Access> matters =
        use ->
            use.range().overlaps(range)
                && (use.mayMeet(access) || (late && use.conflictsWith(range.kind())))
                && !known.order.isBefore(use, access.lane());
    assertThat(met).allMatch(use -> isLikeOne(matters, use));
    for (long at = range.address(); at < range.address() + range.bytes(); at += 16) {
      List<Access> last = new ArrayList<>();
      for (Access use : all) {
        if (use.range().overlaps(new Range(at, 1, Kind.HOLD, false))) {
          if (use.range().kind() == Kind.WRITE) {
            last.clear();
          }
          last.add(use);
        }
      }
      last.removeIf(use -> use.range().kind() != Kind.WRITE && use.watcher() == null);
      int from = Math.max(0, last.size() - KEPT_LAUNCHES);
      last.subList(from, last.size()).stream()
          .filter(matters)
          .forEach(use -> assertThat(met).anyMatch(use::isLike));
    }
  }

  /** A kernel may be launched for ever with the memory that it changes. */
  @Test
  void launchesThatLaterOnesStandInFor_areKept_butNotAllOfThem() {
    Lane lane = known.create(0, 0x100, false, null);
    Lane other = known.create(0, 0x101, false, null);
    Range range = new Range(BASE, 64, Kind.USE, false);
    for (int i = 0; i < 10 * KEPT_LAUNCHES; i++) {
      LaunchWatcher watcher = new TouchedBytes(0);
      history.add(new Access(lane, lane.next(), range, SITE, watcher, List.of()), known.order);
    }
    List<Access> met = new ArrayList<>();
    Access launch = new Access(other, other.next(), range, SITE, new TouchedBytes(0), List.of());
    history.meeting(launch, false, known.order, met::add);
    assertThat(met).hasSize(KEPT_LAUNCHES + 1);
  }

  /** Who waits for what they write learns nothing of what their streams do since. */
  @Test
  void writers_areThoseThatAreNotDone() {
    Lane done = known.create(0, 0x100, false, null);
    Lane pending = known.create(0, 0x101, false, null);
    Lane reading = known.create(0, 0x102, false, null);
    for (Lane lane : List.of(done, pending)) {
      Range range = new Range(BASE, 64, Kind.USE, false);
      history.add(new Access(lane, lane.next(), range, SITE), known.order);
    }
    Range word = new Range(BASE + 4, 4, Kind.READ, false);
    history.add(new Access(reading, reading.next(), word, SITE), known.order);
    known.order.finish(known.workOf(done));
    List<Lane> writers = new ArrayList<>();
    history.writers(word, known.order, writers::add);
    assertThat(writers).containsExactly(pending);
  }

  /** A write stands in for the launches before it, of all bytes. */
  @Test
  void launches_areNotKept_onceAWriteStandsInForThem() {
    Lane lane = known.create(0, 0x100, false, null);
    Lane other = known.create(0, 0x101, false, null);
    for (Kind kind : List.of(Kind.USE, Kind.WRITE)) {
      for (int i = 0; i < 10; i++) {
        LaunchWatcher watcher = kind == Kind.USE ? new TouchedBytes(0) : null;
        Range range = new Range(BASE, 64, kind, false);
        history.add(new Access(lane, lane.next(), range, SITE, watcher, List.of()), known.order);
        assertThat(known.workOf(lane)).isNotNull(); // from now on its work is a later one
      }
    }
    List<Access> met = new ArrayList<>();
    Range range = new Range(BASE, 64, Kind.USE, false);
    Access launch = new Access(other, other.next(), range, SITE, new TouchedBytes(0), List.of());
    history.meeting(launch, false, known.order, met::add);
    assertThat(met).extracting(use -> use.range().kind()).containsExactly(Kind.WRITE);
  }

  /** Bytes that are joined when there are many pieces have the same users, all of them. */
  @ParameterizedTest
  @CsvSource({"1, 2", "2, 1", "1, 3", "3, 1", "2, 3", "3, 2", "3, 3"})
  void piecesSideBySide_areOneOnlyIfTheSameStreamsUseThem(int even, int odd) {
    List<Lane> users = List.of(known.create(0, 1, false, null), known.create(0, 2, false, null));
    Lane asking = known.create(0, 0x102, false, null);
    for (int i = 0; i < 600; i++) {
      for (int each = 0; each < 2; each++) {
        if (((i % 2 == 0 ? even : odd) >> each & 1) != 0) {
          Lane lane = users.get(each);
          Range range = new Range(BASE + i, 1, Kind.USE, false);
          history.add(new Access(lane, lane.next(), range, SITE), known.order);
        }
      }
    }
    for (int i = 0; i < 600; i++) {
      Range range = new Range(BASE + i, 1, Kind.WRITE, false);
      for (int each = 0; each < 2; each++) {
        Lane last = known.create(0, 0x200 + i, false, null);
        last.seen.merge(known.workOf(users.get(1 - each)));
        boolean isUsed = ((i % 2 == 0 ? even : odd) >> each & 1) != 0;
        assertThat(history.race(range, last, known.order) != null).as("%d", i).isEqualTo(isUsed);
      }
      assertThat(history.race(range, asking, known.order)).isNotNull();
    }
  }
}
