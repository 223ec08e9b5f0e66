package io.cuvette.sim.internal.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.internal.base.Extent;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory of a pool, step by step, beside a list of its steps. */
class PoolSpaceModelTest {
  private static final long STEP = 2L << 20;
  private static final long PART = STEP / 4;
  private static final long ROOM = 20 * STEP + PART;
  private static final long END = Long.MAX_VALUE;
  private static final int TURNS = 500;

  private final AtomicLong reserved = new AtomicLong();
  private final PoolSpace space =
      new PoolSpace(STEP, 0, Long.MAX_VALUE, _ -> ROOM - reserved.get(), reserved::addAndGet);

  private final List<Extent> live = new ArrayList<>();
  private final TreeSet<Long> mapped = new TreeSet<>();

  private static List<Long> stepsOf(Extent place) {
    List<Long> steps = new ArrayList<>();
    for (long step = place.offset() / STEP; step * STEP < place.end(); step++) {
      steps.add(step);
    }
    return steps;
  }

  private List<Long> missing(Extent place) {
    return stepsOf(place).stream().filter(step -> !mapped.contains(step)).toList();
  }

  /** Steps in which nothing is, but for those of a place, the last first. */
  private List<Long> idle(List<Long> but) {
    return mapped.descendingSet().stream()
        .filter(step -> !but.contains(step))
        .filter(step -> live.stream().noneMatch(each -> stepsOf(each).contains(step)))
        .toList();
  }

  private void release(List<Long> idle, long most) {
    idle.stream().limit(Math.max(0, most)).forEach(mapped::remove);
  }

  /** The gaps of which one has to be taken: several only if they are of one size. */
  private List<Extent> candidates(long bytes) {
    List<Extent> gaps = new ArrayList<>();
    long from = 0;
    List<Extent> inOrder = new ArrayList<>(live);
    inOrder.sort((a, b) -> Long.compare(a.offset(), b.offset()));
    inOrder.add(new Extent(END, 0));
    for (Extent each : inOrder) {
      if (each.offset() - from >= bytes) {
        gaps.add(new Extent(from, each.offset() - from));
      }
      from = each.end();
    }
    List<Extent> there =
        gaps.stream().filter(gap -> gap.end() < END && missing(gap).isEmpty()).toList();
    List<Extent> all = there.isEmpty() ? gaps : there;
    long least = all.stream().mapToLong(Extent::byteSize).min().orElseThrow();
    return all.stream()
        .filter(gap -> gap.byteSize() == least)
        .map(gap -> front(gap, bytes))
        .toList();
  }

  private static Extent front(Extent gap, long bytes) {
    return new Extent(gap.offset(), bytes);
  }

  private long left() {
    return (ROOM - mapped.size() * STEP) / STEP;
  }

  /** Of several gaps that are alike it is not known which would grow in vain. */
  private void allocate(long bytes) {
    List<Extent> candidates = candidates(bytes);
    Extent place = space.find(space.gaps, bytes);
    if (place != null) {
      assertThat(candidates).contains(place);
      List<Long> missing = missing(place);
      List<Long> idle = idle(stepsOf(place));
      assertThat(missing.size() - idle.size()).isLessThanOrEqualTo((int) left());
      release(idle, missing.size());
      mapped.addAll(missing);
      space.gaps.remove(place);
      live.add(place);
    } else if (candidates.size() == 1) {
      Extent wanted = candidates.getFirst();
      assertThat(missing(wanted).size() - idle(stepsOf(wanted)).size()).isGreaterThan((int) left());
      assertThat(reserved).hasValue(mapped.size() * STEP);
      space.growInVain(space.gaps, bytes);
      List<Long> missing = missing(wanted);
      release(idle(stepsOf(wanted)), missing.size());
      missing.stream().limit(left()).toList().forEach(mapped::add);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void pool_hasTheStepsThatItNeeds_andThoseThatItWasNotAskedToGiveBack(long seed) {
    Random random = new Random(seed);
    for (int turn = 0; turn < TURNS; turn++) {
      long parts = random.nextInt(90);
      switch (random.nextInt(9)) {
        case 0 -> {
          space.trimTo(parts * PART);
          release(idle(List.of()), mapped.size() - (parts + 3) / 4);
        }
        case 1 -> {
          space.shrinkTo(parts * PART);
          release(idle(List.of()), mapped.size() - parts / 4);
        }
        case 2, 3, 4 -> {
          if (!live.isEmpty()) {
            space.gaps.add(live.remove(random.nextInt(live.size())));
          }
        }
        default -> allocate((1 + parts % 30) * PART);
      }
      assertThat(reserved).as("turn %d", turn).hasValue(mapped.size() * STEP);
      assertThat(space.reserved.bytes()).isEqualTo(reserved.get());
    }
  }
}
