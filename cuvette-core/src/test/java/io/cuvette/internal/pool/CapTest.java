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
}
