package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.LaunchWatcher;
import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Launches and other work that nothing orders are held against each other once both are done. */
class KnownLaunchesTest {
  private static final Range ALL = new Range(0x1000, 64, Kind.USE, false);

  private final KnownStreams known = new KnownStreams();
  private final KnownLaunches launches = new KnownLaunches(new BlockLedger(), known.order);
  private final AccessHistory history = new AccessHistory();
  private final KnownBlock block =
      new KnownBlock(0x1000, 64, "memFree", CallTrace.of("memAlloc", "bytes", 64));
  private final Lane first = known.create(0, 0x100, false, null);
  private final Lane second = known.create(0, 0x101, false, null);

  private void use(Lane lane, Range range, @Nullable LaunchWatcher watcher) {
    Access access =
        new Access(lane, lane.next(), range, CallTrace.passing("use"), watcher, List.of());
    launches.used(access, history, block);
    history.add(access, known.order);
  }

  private Findings finished(Lane lane) {
    known.order.finish(known.workOf(lane));
    Findings findings = new Findings();
    launches.finished(findings);
    return findings;
  }

  /** What one of them touches is known only when that one is done. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void twoLaunches_areHeldAgainstEachOther_onceBothAreDone(boolean firstIsFirst) {
    LaunchWatcher one = new TouchedBytes(0);
    LaunchWatcher other = new TouchedBytes(0);
    use(first, ALL, one);
    use(second, ALL, other);
    (firstIsFirst ? one : other).touched(0x1010, 4, Touch.WRITE);
    assertThat(finished(firstIsFirst ? first : second).isEmpty()).isTrue();
    (firstIsFirst ? other : one).touched(0x1012, 1, Touch.READ);
    assertThat(finished(firstIsFirst ? second : first).reports())
        .singleElement()
        .satisfies(report -> {
          assertThat(report.message()).contains("0x1012", "(block 0x1000 of 64 bytes)");
          assertThat(report.sites().getLast().call()).isEqualTo("memAlloc(bytes=64)");
        });
    assertThat(finished(first).isEmpty()).as("once").isTrue();
  }

  @ParameterizedTest
  @CsvSource({
    "READ, WRITE, the write of 0x1000 by the kernel is not ordered after the read by a kernel",
    "WRITE, READ, the read of 0x1000 by the kernel is not ordered after the write by a kernel",
    "WRITE, ATOMIC, the atomic update of 0x1000 by the kernel is not ordered after the write by",
    "ATOMIC, WRITE, by the kernel is not ordered after the atomic update by a kernel",
    "READ, READ, ''",
    "READ, ATOMIC, ''",
    "ATOMIC, READ, ''",
    "ATOMIC, ATOMIC, ''"
  })
  void conflict_isNamed_asTheTwoTouchedTheByte(Touch one, Touch other, String text) {
    LaunchWatcher earlier = new TouchedBytes(0);
    LaunchWatcher later = new TouchedBytes(0);
    use(first, ALL, earlier);
    use(second, ALL, later);
    earlier.touched(0x1000, 1, one);
    later.touched(0x1000, 1, other);
    assertThat(finished(first).isEmpty()).isTrue();
    Findings findings = finished(second);
    if (text.isEmpty()) {
      assertThat(findings.isEmpty()).isTrue();
    } else {
      assertThat(findings.reports()).singleElement().asString().contains(text);
    }
  }

  /** Whatever is done with the memory but with none of its bytes is beside no launch. */
  @Test
  void launchBesideWorkThatNeedsNoContent_isNoConflict() {
    for (Lane lane : List.of(first, second)) {
      LaunchWatcher launch = new TouchedBytes(0);
      use(lane == first ? second : first, new Range(0x1000, 64, Kind.HOLD, false), null);
      use(lane, ALL, launch);
      use(lane == first ? second : first, new Range(0x1000, 64, Kind.HOLD, false), null);
      launch.touched(0x1000, 8, Touch.WRITE);
      assertThat(finished(first).isEmpty()).isTrue();
      assertThat(finished(second).isEmpty()).isTrue();
    }
  }

  /** Work that reads what a launch writes, whichever of the two was queued first. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void launchBesideARead_isHeldAgainstIt_onceBothAreDone(boolean readIsFirst) {
    LaunchWatcher launch = new TouchedBytes(0);
    Range read = new Range(0x1000, 64, Kind.READ, false);
    use(second, new Range(0x2000, 64, Kind.USE, false), new TouchedBytes(0));
    use(first, readIsFirst ? read : ALL, readIsFirst ? null : launch);
    use(second, readIsFirst ? ALL : read, readIsFirst ? launch : null);
    launch.touched(0x1010, 4, Touch.WRITE);
    assertThat(finished(first).isEmpty()).isTrue();
    assertThat(finished(second).reports())
        .singleElement()
        .satisfies(report ->
            assertThat(report.message())
                .contains(
                    readIsFirst
                        ? "the write of 0x1010 by the kernel is not ordered after the read on "
                        : "the read of 0x1010 is not ordered after the write by a kernel on "));
  }

  @Test
  void launchBesideSeveralOthers_isHeldAgainstEach() {
    Lane third = known.create(0, 0x102, false, null);
    LaunchWatcher one = new TouchedBytes(0);
    LaunchWatcher other = new TouchedBytes(0);
    LaunchWatcher last = new TouchedBytes(0);
    use(first, ALL, one);
    use(second, ALL, other);
    use(third, ALL, last);
    one.touched(0x1000, 1, Touch.WRITE);
    other.touched(0x1008, 1, Touch.WRITE);
    last.touched(0x1000, 16, Touch.READ);
    assertThat(finished(first).isEmpty()).isTrue();
    assertThat(finished(second).isEmpty()).isTrue();
    assertThat(finished(third).reports())
        .satisfiesExactlyInAnyOrder(
            report -> assertThat(report.message()).contains("read of 0x1000 by"),
            report -> assertThat(report.message()).contains("read of 0x1008 by"));
  }

  /** More are not remembered of one stream: each stands in for those before it. */
  @Test
  void launchBesideManyOfAStream_isHeldAgainstTheLastOfThem() {
    List<TouchedBytes> many = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      TouchedBytes launch = new TouchedBytes(0);
      use(first, ALL, launch);
      many.add(launch);
    }
    LaunchWatcher last = new TouchedBytes(0);
    use(second, ALL, last);
    for (int i = 0; i < 40; i++) {
      many.get(i).touched(0x1000 + i, 1, Touch.WRITE);
    }
    last.touched(0x1000, 63, Touch.READ);
    assertThat(finished(first).isEmpty()).isTrue();
    List<String> found = finished(second).reports().stream().map(each -> each.message()).toList();
    assertThat(found).hasSize(33);
    for (int i = 7; i < 40; i++) {
      String address = "read of 0x%x by".formatted(0x1000 + i);
      assertThat(found).anyMatch(message -> message.contains(address));
    }
  }

  @Test
  void lastByteOfAPage_isOneOfTheHosts() {
    Range two = new Range(0x1000, 0x2000, Kind.USE, false);
    LaunchWatcher launch = new TouchedBytes(0);
    use(first, two, launch);
    Range read = new Range(0x1000, 0x2000, Kind.READ, true);
    launches.usedByHost(read, CallTrace.passing("reads"), history, block);
    launch.touched(0x1fff, 1, Touch.WRITE);
    assertThat(finished(first).reports()).singleElement().asString().contains("0x1fff");
  }

  /** A program that polls reads it many times. */
  @Test
  void rangeThatTheHostReadsAgainAndAgain_isReportedOnce() {
    LaunchWatcher launch = new TouchedBytes(0);
    use(first, ALL, launch);
    for (int round = 0; round < 3; round++) {
      Range read = new Range(0x1000, 64, Kind.READ, true);
      launches.usedByHost(read, CallTrace.passing("reads"), history, block);
    }
    launch.touched(0x1010, 4, Touch.WRITE);
    assertThat(finished(first).reports())
        .singleElement()
        .satisfies(report -> {
          assertThat(report.message())
              .contains("read of 0x1010 by the host may come before the write by a kernel on ");
          assertThat(report.sites().getFirst().getStackTrace()).isNotEmpty();
        });
  }

  /** A driver that has others told what launches touch, and not the sanitizer. */
  @Test
  void launchesThatSomebodyElseWatches_tellNothingHere() {
    LaunchWatcher mine = new TouchedBytes(0);
    use(first, ALL, (_, _, _) -> {});
    use(second, ALL, (_, _, _) -> {});
    use(second, new Range(0x1000, 64, Kind.WRITE, false), null);
    use(first, new Range(0x1000, 64, Kind.READ, false), null);
    mine.touched(0x1000, 1, Touch.WRITE);
    assertThat(finished(first).isEmpty()).isTrue();
    assertThat(finished(second).isEmpty()).isTrue();
  }
}
