package io.cuvette.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Whose turn it is among many of which only some are looked at. */
class RotationTest {
  private static List<Integer> numbers(int size) {
    return IntStream.range(0, size).boxed().toList();
  }

  /** Each has its turn as often as any other, but for the round that goes on. */
  @Test
  void turns_goRoundAsManyAsThereAre() {
    for (int size = 1; size <= 9; size++) {
      List<Integer> all = numbers(size);
      for (int most = 1; most <= size; most++) {
        Rotation rotation = new Rotation();
        Map<Integer, Integer> turns = new HashMap<>();
        List<Integer> flat = new ArrayList<>();
        for (int round = 0; round < 3 * size; round++) {
          List<Integer> now = rotation.of(all, most);
          assertThat(now).containsExactlyInAnyOrderElementsOf(all);
          flat.addAll(now.subList(0, most));
          now.subList(0, most).forEach(each -> turns.merge(each, 1, Integer::sum));
        }
        assertThat(turns).as("%d of %d", most, size).hasSize(size);
        assertThat(turns.values()).containsOnly(3 * most);
        for (int i = 0; i < flat.size(); i++) {
          assertThat(flat.get(i)).as("%d of %d", most, size).isEqualTo(i % size);
        }
      }
    }
  }

  /** They are looked at anyway, and that is nobody's turn. */
  @Test
  void fewerThanAreLookedAt_comeInTheirOrder_andChangeNoTurn() {
    Rotation rotation = new Rotation();
    assertThat(rotation.of(numbers(5), 2)).containsExactly(0, 1, 2, 3, 4);
    for (int size = 0; size <= 3; size++) {
      assertThat(rotation.of(numbers(size), 3)).isEqualTo(numbers(size));
    }
    assertThat(rotation.of(numbers(5), 2)).containsExactly(2, 3, 4, 0, 1);
  }

  /** Nobody is lost or twice there where their number changes, and the list is the caller's. */
  @Test
  void anyNumbersOfAnyCollections_giveAllOfThem() {
    SplittableRandom random = new SplittableRandom(5);
    Rotation rotation = new Rotation();
    for (int round = 0; round < 2_000; round++) {
      List<Integer> all = numbers(random.nextInt(12));
      List<Integer> now = rotation.of(all, 1 + random.nextInt(12));
      assertThat(now).containsExactlyInAnyOrderElementsOf(all);
      now.clear();
    }
  }
}
