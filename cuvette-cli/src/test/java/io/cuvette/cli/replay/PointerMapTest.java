package io.cuvette.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PointerMapTest {
  /** Few keys meet again and again; many make it grow; multiples of a power of two collide. */
  @ParameterizedTest
  @ValueSource(longs = {10, 1000, 1L << 40})
  void addAndRemove_areThoseOfAMap(long keys) {
    SplittableRandom random = new SplittableRandom(keys);
    PointerMap map = new PointerMap();
    Map<Long, Integer> model = new HashMap<>();
    for (int i = 0; i < 200_000; i++) {
      long key = random.nextLong(keys) << (random.nextInt(3) * 12);
      if (random.nextInt(5) < 3) {
        boolean isNew = !model.containsKey(key);
        assertThat(map.add(key, i)).as("seed=%d, add %d at %d", keys, key, i).isEqualTo(isNew);
        model.putIfAbsent(key, i);
      } else {
        Integer value = model.remove(key);
        assertThat(map.remove(key))
            .as("seed=%d, remove %d at %d", keys, key, i)
            .isEqualTo(value == null ? PointerMap.NONE : value);
      }
    }
    model.forEach((key, value) -> assertThat(map.remove(key)).isEqualTo(value));
  }

  /** By a multiplication that a trace could undo these would all have one place: for hours. */
  @Test
  void pointersThatWereMadeToMeet_areApart() {
    long inverse = 1; // of the odd constant, by Newton's steps
    for (int i = 0; i < 6; i++) {
      inverse *= 2 - 0x9e3779b97f4a7c15L * inverse;
    }
    PointerMap map = new PointerMap();
    int pointers = 500_000;
    for (int i = 1; i <= pointers; i++) {
      assertThat(map.add((5L << 32 | i) * inverse, 2 * i)).isTrue();
      assertThat(map.add((long) i << 44, 2 * i + 1)).isTrue();
    }
    for (int i = 1; i <= pointers; i++) {
      assertThat(map.remove((5L << 32 | i) * inverse)).isEqualTo(2 * i);
      assertThat(map.remove((long) i << 44)).isEqualTo(2 * i + 1);
    }
  }
}
