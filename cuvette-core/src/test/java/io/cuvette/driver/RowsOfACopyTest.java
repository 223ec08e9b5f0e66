package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BoxCopy.Side;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** What a copy of rows says of itself, against its bytes counted one by one. */
class RowsOfACopyTest {
  private static final int ROUNDS = 4_000;

  private static BoxCopy random(Random random) {
    long width = random.nextInt(4);
    long height = 1 + random.nextInt(3);
    long depth = 1 + random.nextInt(3);
    return new BoxCopy(
        side(random, width, height), side(random, width, height), width, height, depth);
  }

  private static Side side(Random random, long width, long height) {
    return new Side(random.nextInt(60), width + random.nextInt(6), height + random.nextInt(3));
  }

  /** The source of each byte of the target. */
  private static Map<Long, Long> bytes(BoxCopy copy) {
    Map<Long, Long> bytes = new TreeMap<>();
    for (long row = 0; row < copy.allRows(); row++) {
      for (long i = 0; i < copy.width(); i++) {
        bytes.put(
            copy.target().addressOf(row, copy.height()) + i,
            copy.source().addressOf(row, copy.height()) + i);
      }
    }
    return bytes;
  }

  @Test
  void commonBytes_areThoseOfTwoRows_whereRowsOfBothSidesMeet() {
    Random random = new Random(12);
    for (int round = 0; round < ROUNDS; round++) {
      BoxCopy copy = random(random);
      long common = copy.commonBytes();
      boolean isOfTwoRows = false;
      boolean meet = false;
      for (long to = 0; to < copy.allRows(); to++) {
        for (long from = 0; from < copy.allRows(); from++) {
          long apart =
              copy.target().addressOf(to, copy.height())
                  - copy.source().addressOf(from, copy.height());
          long both = Math.max(0, copy.width() - Math.abs(apart));
          meet |= both > 0;
          isOfTwoRows |= both == common;
        }
      }
      assertThat(common > 0).as("%s", copy).isEqualTo(meet);
      assertThat(common == 0 || isOfTwoRows).as("%s: %d", copy, common).isTrue();
    }
  }

  @Test
  void mergedCopy_copiesTheSame_inFewerRows() {
    Random random = new Random(13);
    for (int round = 0; round < ROUNDS; round++) {
      BoxCopy copy = random(random);
      BoxCopy merged = copy.merged();
      assertThat(bytes(merged)).as("%s as %s", copy, merged).isEqualTo(bytes(copy));
      assertThat(merged.allRows()).isLessThanOrEqualTo(copy.allRows());
      assertThat(merged.merged()).isEqualTo(merged);
      if (copy.height() == 1 && copy.depth() == 1) { // what lies behind it is of no copy of one row
        long width = copy.width();
        Side target = new Side(copy.target().address(), width, 1);
        Side source = new Side(copy.source().address(), width, 1);
        assertThat(merged).isEqualTo(new BoxCopy(target, source, width, 1, 1));
      }
    }
    Side dense = new Side(0, 4, 3);
    Side wide = new Side(1_000, 8, 3);
    assertThat(new BoxCopy(dense, dense, 4, 3, 2).merged().allRows()).isEqualTo(1);
    assertThat(new BoxCopy(dense, wide, 4, 3, 2).merged())
        .isEqualTo(new BoxCopy(new Side(0, 4, 6), new Side(1_000, 8, 6), 4, 6, 1));
    assertThat(new BoxCopy(dense, wide, 4, 1, 2).merged())
        .isEqualTo(new BoxCopy(new Side(0, 12, 2), new Side(1_000, 24, 2), 4, 2, 1));
    Side tall = new Side(1_000, 8, 4);
    assertThat(new BoxCopy(dense, tall, 4, 3, 2).merged().depth()).isEqualTo(2);
  }

  @Test
  void span_isFromTheFirstByteToTheLast() {
    Random random = new Random(14);
    for (int round = 0; round < ROUNDS; round++) {
      BoxCopy copy = random(random);
      Map<Long, Long> bytes = bytes(copy);
      long last = bytes.keySet().stream().mapToLong(at -> at + 1).max().orElse(0);
      long expected = bytes.isEmpty() ? 0 : last - copy.target().address();
      assertThat(copy.span(copy.target())).as("%s", copy).isEqualTo(expected);
    }
  }

  @Test
  void copyIsForTheDriver_whereBothPitchesAre() {
    Side fits = new Side(0, BoxCopy.MAX_PITCH, 2);
    Side large = new Side(0, BoxCopy.MAX_PITCH + 1, 2);
    assertThat(new BoxCopy(fits, fits, 4, 2, 1).isForDriver()).isTrue();
    assertThat(new BoxCopy(large, fits, 4, 2, 1).isForDriver()).isFalse();
    assertThat(new BoxCopy(fits, large, 4, 2, 1).isForDriver()).isFalse();
  }
}
