package io.cuvette.internal.space;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/** Which pieces a range of addresses has, and which of them can be used. */
class MappedPiecesTest {
  private static final long PAGE = 2L << 20;
  private static final long BASE = 1L << 40;

  /** So many that their marks are in more than one array. */
  private static final long PAGES = 3 << 12;

  private final Pieces pieces = new Pieces(BASE, PAGES * PAGE, PAGE);

  private void add(long page, long pages) {
    pieces.reserve(BASE + page * PAGE, pages * PAGE);
    pieces.add(BASE + page * PAGE, pages * PAGE);
  }

  private static long at(long page) {
    return BASE + page * PAGE;
  }

  @Test
  void piecesThatLieInARangeWhole_areThoseThatCount() {
    add(0, 1);
    add(1, 4);
    add(5, 1);
    assertThat(pieces.firstIn(BASE, at(6))).isEqualTo(BASE);
    assertThat(pieces.firstIn(at(1), at(5))).isEqualTo(at(1));
    assertThat(pieces.firstIn(at(1), at(5) - 1)).isEqualTo(Pieces.NONE);
    assertThat(pieces.firstIn(at(2), at(5))).isEqualTo(Pieces.NONE);
    assertThat(pieces.bytesWithin(BASE, at(6))).isEqualTo(6 * PAGE);
    assertThat(pieces.bytesWithin(BASE + 1, at(6))).isEqualTo(5 * PAGE);
    assertThat(pieces.bytesWithin(BASE, at(5) - 1)).isEqualTo(PAGE);
    assertThat(pieces.bytesWithin(at(2), at(6))).isEqualTo(PAGE);
  }

  @Test
  void pieceThatNobodyCanUse_isNoneOfThoseThatCanBeUsed() {
    add(0, 1);
    add(1, 4);
    pieces.strand(at(1), PAGE);
    assertThat(pieces.hasStuck()).isTrue();
    assertThat(pieces.sizeAt(at(1))).isEqualTo(4 * PAGE);
    assertThat(pieces.bytesAt(at(1))).isZero();
    assertThat(pieces.next(at(1), at(5))).isEqualTo(Pieces.NONE);
    assertThat(pieces.nextStuck(BASE)).isEqualTo(at(1));
    assertThat(pieces.startOf(at(1))).isEqualTo(BASE);
    assertThat(pieces.count()).isEqualTo(1);
    assertThat(pieces.mappedBytes()).isEqualTo(PAGE);
    pieces.removeStuck(at(1));
    assertThat(pieces.hasStuck()).isFalse();
    assertThat(pieces.nextStuck(BASE)).isEqualTo(Pieces.NONE);
    assertThat(pieces.sizeAt(at(1))).isZero();
  }

  @Test
  void pieces_areFoundWhereverTheyAre() {
    add(PAGES - 1, 1);
    assertThat(pieces.next(BASE, at(PAGES))).isEqualTo(at(PAGES - 1));
    assertThat(pieces.next(BASE, at(PAGES - 1))).isEqualTo(Pieces.NONE);
    assertThat(pieces.bytesAt(at(PAGES - 1))).isEqualTo(PAGE);
    assertThat(pieces.bytesAt(at(PAGES))).as("behind the last").isZero();
    pieces.strand(BASE, PAGES * PAGE);
    assertThat(pieces.nextStuck(at(1))).isEqualTo(at(PAGES - 1));
    assertThat(pieces.nextStuck(at(PAGES))).isEqualTo(Pieces.NONE);
  }

  @Test
  void everyAddressOfAPiece_isInIt() {
    add(4, 16);
    for (long page = 4; page < 20; page++) {
      assertThat(pieces.startOf(at(page) + 1)).isEqualTo(at(4));
    }
    assertThat(pieces.startOf(BASE)).as("nothing begins there").isEqualTo(BASE);
  }

  @Test
  void pieceForWhichThereIsNoRoom_isRefused() {
    assertThatThrownBy(() -> pieces.add(BASE, PAGE))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("page: 0 (expected: one there is room for)");
    assertThat(pieces.count()).isZero();
    assertThat(pieces.mappedBytes()).isZero();
  }
}
