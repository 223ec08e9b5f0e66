package io.cuvette.sim.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.sim.internal.base.SimRefusal;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Addresses of one size: none twice at a time, and one that was freed not at once again. */
class SlotClassTest {
  private static final int STEPS = 3000;

  @Test
  void slots_areTakenAnew_untilHalfOfThemAreFree_thenTheLongestFree() {
    for (int slots : new int[] {1, 2, 40, 64}) {
      SlotClass all = new SlotClass(slots);
      Random random = new Random(slots);
      Deque<Integer> free = new ArrayDeque<>();
      List<Integer> taken = new ArrayList<>();
      int used = 0;
      for (int step = 0; step < STEPS; step++) {
        boolean takes = step / 200 % 2 == 0 ? random.nextInt(4) > 0 : random.nextInt(4) == 0;
        if (takes && taken.size() < slots) {
          boolean again = free.size() > slots / 2 || used == slots;
          int slot = all.take();
          assertThat(slot).isEqualTo(again ? free.removeFirst() : used++);
          taken.add(slot);
        } else if (!takes && !taken.isEmpty()) {
          int index = random.nextInt(taken.size());
          int slot = taken.set(index, taken.getLast());
          taken.removeLast();
          all.give(slot);
          free.addLast(slot);
        }
        assertThat(all.wasUsed(used)).isFalse();
        assertThat(used == 0 || all.wasUsed(used - 1)).isTrue();
      }
      assertThat(used).isEqualTo(slots);
    }
  }

  @Test
  void slots_areOnlySoMany() {
    SlotClass two = new SlotClass(2);
    assertThat(two.take()).isZero();
    assertThat(two.take()).isEqualTo(1);
    assertThatExceptionOfType(SimRefusal.class).isThrownBy(two::take);
    two.give(1);
    assertThat(two.take()).isEqualTo(1);
    assertThat(two.get(2)).isNull();
  }

  @Test
  void slotThatWasFreed_isTakenAgain_onceMoreThanHalfAreFree() {
    SlotClass eight = new SlotClass(8);
    for (int slot = 0; slot < 6; slot++) {
      assertThat(eight.take()).isEqualTo(slot);
    }
    for (int slot = 4; slot >= 1; slot--) {
      eight.give(slot);
    }
    assertThat(eight.take()).as("four are free, not more").isEqualTo(6);
    eight.give(0);
    assertThat(eight.take()).as("the longest free").isEqualTo(4);
    assertThat(eight.take()).isEqualTo(7);
    assertThat(eight.take()).as("all were used").isEqualTo(3);
  }

  /** However many slots were taken, and of whichever the room for more begins. */
  @Test
  void slotBehindThoseThatWereTaken_hasNoBlock() {
    SlotClass all = new SlotClass(100);
    for (int taken = 0; taken <= 100; taken++) {
      for (long slot : new long[] {taken, taken + 1, Integer.MAX_VALUE, 1L << 40}) {
        assertThat(all.get(slot)).isNull();
        assertThat(all.wasUsed(slot)).isFalse();
      }
      if (taken < 100) {
        assertThat(all.take()).isEqualTo(taken);
      }
    }
  }
}
