package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RangeMapTest {
  private static final int SIZE = 1000;
  private static final int BASE = 5000;

  private final RangeMap<Integer> map = new RangeMap<>();
  private final Integer[] model = new Integer[SIZE];

  /** Each byte has the value that an array of values has; pieces are never longer than they are. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void randomChanges_areThoseOfAnArray(long seed) {
    Random random = new Random(seed);
    for (int step = 0; step < 2000; step++) {
      int from = random.nextInt(SIZE);
      int bytes = random.nextInt(Math.min(SIZE - from, step % 2 == 0 ? 8 : SIZE) + 1);
      change(random.nextInt(4), from, bytes, random.nextInt(3));
      assertSame(seed, step, from, bytes);
    }
  }

  private void change(int kind, int from, int bytes, int value) {
    switch (kind) {
      case 0 -> map.set(BASE + from, bytes, value);
      case 1 -> map.clear(BASE + from, bytes);
      case 2 -> map.change(BASE + from, bytes, before -> before == null ? value : before + value);
      default -> map.tidy(all -> all, Integer::equals);
    }
    for (int i = from; i < from + bytes && kind < 3; i++) {
      Integer before = model[i];
      model[i] = kind == 0 ? Integer.valueOf(value) : kind == 1 ? null : added(before, value);
    }
  }

  private static Integer added(Integer before, int value) {
    return before == null ? value : before + value;
  }

  private void assertSame(long seed, int step, int from, int bytes) {
    Integer[] found = new Integer[SIZE];
    int[] pieces = new int[1];
    map.visit(
        BASE,
        SIZE,
        (at, count, value) -> {
          pieces[0]++;
          for (long i = at; i < at + count; i++) {
            int index = (int) i - BASE;
            found[index] = found[index] == null ? value : Integer.valueOf(-1); // never twice
          }
        });
    assertThat(Arrays.equals(found, model)).as("seed=%d step=%d", seed, step).isTrue();
    assertThat(pieces[0]).as("seed=%d step=%d: no more than needed", seed, step).isEqualTo(runs());
    Integer first = null;
    for (int i = from; i < from + bytes && first == null; i++) {
      first = Objects.equals(model[i], 1) ? model[i] : null;
    }
    assertThat(map.find(BASE + from, bytes, value -> value == 1)).isEqualTo(first);
  }

  private int runs() {
    int runs = 0;
    for (int i = 0; i < SIZE; i++) {
      boolean goesOn = i > 0 && Objects.equals(model[i], model[i - 1]);
      runs += model[i] == null || goesOn ? 0 : 1;
    }
    return runs;
  }

  /** What is left of a value may be another one, or nothing. */
  @Test
  void tidiedMap_hasWhatIsLeftOfEachValue() {
    for (int i = 0; i < SIZE; i++) {
      map.set(BASE + i, 1, i % 4);
      model[i] = i % 4 == 0 ? null : Integer.valueOf(i % 4 == 3 ? 2 : i % 4);
    }
    map.tidy(value -> value == 0 ? null : value == 3 ? Integer.valueOf(2) : value, Integer::equals);
    assertSame(0, 0, 0, SIZE);
  }

  /** A part of no bytes is none. */
  @Test
  void parts_areVisitedUpToTheEnd_andNotAtIt() {
    map.set(10, 5, 1);
    map.set(15, 5, 2);
    map.set(30, 1, 3);
    assertThat(visited(0, 10)).isEmpty();
    assertThat(visited(10, 5)).containsExactly("10+5: 1");
    assertThat(visited(14, 2)).containsExactly("14+1: 1", "15+1: 2");
    assertThat(visited(20, 10)).isEmpty();
    assertThat(visited(19, 12)).containsExactly("19+1: 2", "30+1: 3");
  }

  private List<String> visited(long from, long bytes) {
    List<String> parts = new ArrayList<>();
    map.visit(from, bytes, (at, count, value) -> parts.add(at + "+" + count + ": " + value));
    return parts;
  }

  @Test
  void neighboursOfEqualValues_areOne() {
    for (int i = 0; i < 10; i += 2) {
      map.set(i, 1, 7);
    }
    for (int i = 1; i < 10; i += 2) {
      map.set(i, 1, 7);
    }
    int[] pieces = new int[1];
    map.visit(0, 100, (_, bytes, _) -> pieces[0] += bytes == 10 ? 1 : 100);

    assertThat(pieces[0]).isEqualTo(1);
  }
}
