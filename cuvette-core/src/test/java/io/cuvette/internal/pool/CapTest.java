package io.cuvette.internal.pool;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class CapTest {
  private static final long GIB = 1L << 30;
  private static final long MIB = 1L << 20;

  private final Budget held = new Budget(16 * GIB);
  private final Cap cap = new Cap();

  private boolean leavesApart(long bytes) {
    return cap.leavesApart(bytes, () -> GIB, held);
  }

  private void hold(long bytes) {
    assertThat(held.reserve(bytes)).isTrue();
    held.enterArena(bytes);
  }

  private void gatherOften(int times) {
    for (int i = 0; i < times; i++) {
      cap.gathered(i);
    }
  }

  @Test
  void memoryThatIsSeldomBroughtTogether_isNotLeftApart() {
    for (long allocations = 512; allocations < 1_000_000; allocations += 512) {
      cap.gathered(allocations);
    }
    assertThat(leavesApart(512)).isFalse();
  }

  @Test
  void memoryThatIsOftenBroughtTogether_isLeftApart_upToHalfOfThePeak() {
    gatherOften(10);
    hold(GIB);
    hold(GIB / 16);
    assertThat(leavesApart(MIB)).isTrue();
    hold(GIB / 16);
    assertThat(leavesApart(MIB)).isFalse();
    gatherOften(1_000);
    assertThat(leavesApart(MIB)).isTrue();
    hold(GIB / 2);
    assertThat(leavesApart(MIB)).isFalse();
  }

  @Test
  void memoryIsLeftApart_asLongAsItIsHalfOfThePeakWithTheBlock_toTheByte() {
    gatherOften(1_000);
    long block = 64 * MIB;
    long peak = GIB + block;
    hold(peak + peak / 1000 * 500 - block);
    assertThat(leavesApart(block)).isTrue();
    hold(1);
    assertThat(leavesApart(block)).isFalse();
  }

  @Test
  void memoryIsNotLeftApart_whereTheLimitIsNear() {
    gatherOften(1_000);
    hold(GIB);
    held.setLimit(GIB + 64 * MIB);
    assertThat(leavesApart(32 * MIB)).isTrue();
    assertThat(leavesApart(33 * MIB)).as("room for pages around it").isFalse();
  }

  @Test
  void memoryIsNotLeftApart_onceTheDriverHasNoMore() {
    gatherOften(1_000);
    assertThat(leavesApart(MIB)).isTrue();
    cap.refused();
    assertThat(leavesApart(MIB)).isFalse();
  }

  @Test
  void whatIsMappedInPlaceOfBringingMemoryTogether_isNotMovedFromElsewhere() {
    hold(GIB);
    assertThat(cap.toMove(100 * MIB, GIB, held)).isGreaterThan(85 * MIB);
    gatherOften(1_000);
    assertThat(cap.toMove(100 * MIB, GIB, held)).isNotPositive();
  }

  /** How many permille of the peak may be held beyond it. */
  private long permille() {
    long room = GIB - cap.toMove(GIB, GIB, held);
    return room / (GIB / 1000);
  }

  @Test
  void morePieces_raiseWhatIsHeld_eachThousandAnew_upToFivePercent() {
    hold(GIB);
    assertThat(permille()).isEqualTo(10);
    cap.moved(1023, 1);
    assertThat(permille()).isEqualTo(10);
    cap.moved(1, 2);
    assertThat(permille()).isEqualTo(20);
    cap.moved(1023, 3);
    assertThat(permille()).as("counted from the last rise").isEqualTo(20);
    cap.moved(1, 4);
    assertThat(permille()).isEqualTo(30);
    for (int i = 5; i < 100; i++) {
      cap.moved(1024, i);
    }
    assertThat(permille()).isEqualTo(50);
    assertThat(cap.movedPieces()).isEqualTo(97 * 1024);
  }

  @Test
  void piecesThatMoveInManyAllocations_areCheap() {
    hold(GIB);
    for (int i = 1; i < 100; i++) {
      cap.moved(1024, i * 16L * 1024);
    }
    assertThat(permille()).isEqualTo(10);
    cap.moved(1024, 100 * 16L * 1024 - 1);
    assertThat(permille()).isEqualTo(20);
  }

  @Test
  void memoryThatIsBroughtTogetherTwice_isLeftApart_howeverLateThatIs() {
    cap.gathered(1_000_000);
    assertThat(leavesApart(MIB)).isFalse();
    cap.gathered(1_000_511);
    assertThat(leavesApart(MIB)).isTrue();
  }

  @Test
  void whatWasInUseOnce_countsForWhatIsHeldLater() {
    cap.use(GIB);
    cap.use(MIB);
    hold(GIB);
    assertThat(cap.toMove(5 * MIB, MIB, held)).isNotPositive();
    assertThat(cap.toMove(11 * MIB, MIB, held)).isEqualTo(11 * MIB - GIB / 1000 * 10);
    held.setLimit(GIB + MIB);
    assertThat(cap.toMove(5 * MIB, MIB, held)).as("the limit's room").isEqualTo(4 * MIB);
    assertThat(cap.toMove(0, MIB, held)).isZero();
    held.setLimit(16 * GIB);
    hold(GIB);
    assertThat(cap.toMove(5 * MIB, MIB, held)).as("more is held already").isEqualTo(5 * MIB);
  }

  @Test
  void pieces_areAPartOfThePeak_andNoneIsHuge() {
    assertThat(cap.largestPiece()).isZero();
    cap.use(GIB);
    assertThat(cap.largestPiece()).isEqualTo(8 * MIB);
    cap.use(64 * GIB);
    assertThat(cap.largestPiece()).isEqualTo(32 * MIB);
  }
}
