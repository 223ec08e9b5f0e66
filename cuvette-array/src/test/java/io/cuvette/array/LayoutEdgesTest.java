package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Layouts with axes of size 0 and 1, which no element tells apart but strides and shapes do. */
class LayoutEdgesTest {

  @Test
  void emptyAxis_leavesTheStridesBeforeIt() {
    assertThat(Layout.of(2, 0, 3).strides()).containsExactly(3, 3, 1);
    assertThat(Layout.of(Order.F, 2, 0, 3).strides()).containsExactly(1, 2, 2);
  }

  @Test
  void emptyAxis_isTheCommonSizeOfItAndOne() {
    assertThat(Layout.broadcastShape(new long[] {0}, new long[] {1})).containsExactly(0);
    assertThat(Layout.broadcastShape(new long[] {2, 1}, new long[] {0})).containsExactly(2, 0);
  }

  @Test
  void axisOfOne_thatDoesNotGrow_keepsItsStride() {
    Layout row = Layout.of(1, 3);
    assertThat(row.broadcastTo(1, 3)).isEqualTo(row);
    assertThat(row.broadcastTo(2, 3).strides()).containsExactly(0, 1);
  }

  @Test
  void sliceOfOneElement_keepsTheStride_howeverLargeTheStep() {
    Layout one = Layout.of(4, 3).slice(Range.of(1, 4).step(Long.MAX_VALUE));
    assertThat(one.shape()).containsExactly(1, 3);
    assertThat(one.strides()).containsExactly(3, 1);
    assertThat(one.offset()).isEqualTo(3);
  }

  /** Its first element would lie behind the memory. */
  @Test
  void sliceWithoutElements_beginsWhereItsArrayDoes() {
    Layout all = Layout.strided(new long[] {4, 3}, new long[] {3, 1}, 5);
    for (int first = 0; first <= 4; first++) {
      Layout none = all.slice(Range.of(first, first), Range.of(1, 3));
      assertThat(none.shape()).containsExactly(0, 2);
      assertThat(none.offset()).isEqualTo(6);
      assertThat(none.lowest()).isEqualTo(6);
      assertThat(none.end()).isEqualTo(6);
    }
  }

  @Test
  void arrayInBothOrders_isMadeAnewInOrderC() {
    Layout row = Layout.of(1, 3);
    assertThat(row.isContiguous(Order.F)).isTrue();
    assertThat(row.like(Order.A, 2, 3)).isEqualTo(Layout.of(2, 3));
    assertThat(Layout.of(Order.F, 4, 3).like(Order.A, 2, 3)).isEqualTo(Layout.of(Order.F, 2, 3));
  }
}
