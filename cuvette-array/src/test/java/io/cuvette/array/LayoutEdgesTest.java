package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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

  /** Behind the last element is one more place, where the memory ends. */
  @Test
  void lastPlace_isNoElements() {
    long[] one = {1};
    assertThat(Layout.strided(one, one, Long.MAX_VALUE - 1).end()).isEqualTo(Long.MAX_VALUE);
    assertThatThrownBy(() -> Layout.strided(one, one, Long.MAX_VALUE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("(expected: elements at 0 to 2^63-2)");
  }

  /** Strides are counted without the empty axis. */
  @Test
  void axesBesideAnEmptyOne_areNoLargerThanOfAnArray() {
    assertThat(Layout.of(1L << 61, 0, 2).size()).isZero();
    for (long[] shape : new long[][] {{1L << 61, 0, 4}, {0, 1L << 61, 4}, {1L << 61, 4, 0}}) {
      assertThatThrownBy(() -> Layout.of(shape))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("(expected: at most 2^63-1 elements)");
    }
  }

  @Test
  void openAxisBesideAnEmptyOne_hasNoSize() {
    Layout empty = Layout.of(3, 0);
    assertThat(empty.reshape(0, 7).orElseThrow().shape()).containsExactly(0, 7);
    assertThat(empty.reshape(7, -1).orElseThrow().shape()).containsExactly(7, 0);
    assertThatThrownBy(() -> empty.reshape(0, -1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-1 at most once");
  }

  @Test
  void arrayInBothOrders_isMadeAnewInOrderC() {
    Layout row = Layout.of(1, 3);
    assertThat(row.isContiguous(Order.F)).isTrue();
    assertThat(row.like(Order.A, 2, 3)).isEqualTo(Layout.of(2, 3));
    assertThat(Layout.of(Order.F, 4, 3).like(Order.A, 2, 3)).isEqualTo(Layout.of(Order.F, 2, 3));
  }
}
