package io.cuvette.array.internal.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Into how many passes, parts and blocks a reduction is cut, and what each of them reads. */
class ReductionPlanTest {
  private static final long IN = 24;
  private static final long OUT = 40;

  private static Axes axes(long size, long... strides) {
    long[][] each = new long[strides.length][];
    for (int i = 0; i < strides.length; i++) {
      each[i] = size == 1 ? new long[0] : new long[] {strides[i]};
    }
    return new Axes(size == 1 ? new long[0] : new long[] {size}, each);
  }

  /** Sums the rows of a matrix of floats, or its columns. */
  private static ReductionPlan plan(long results, long elements, boolean isAcross) {
    long inner = 4;
    long outer = 4 * (isAcross ? results : elements);
    return ReductionPlan.of(
        axes(results, isAcross ? inner : outer, 4),
        axes(elements, isAcross ? outer : inner),
        IN,
        OUT);
  }

  @ParameterizedTest
  @CsvSource({
    // results, elements, across; columns, splits, chunk, blocks
    "1, 1, false, false, 1, 1, 1",
    "1, 0, false, false, 1, 1, 1",
    "1, 4096, false, false, 1, 4096, 1",
    "1, 4097, false, false, 2, 2049, 2",
    "1, 10000, false, false, 3, 3334, 3",
    "1, 100000000, false, false, 1024, 97657, 1024",
    "2, 100000000, false, false, 512, 195313, 1024",
    "1024, 100000, false, false, 1, 100000, 1024",
    "1025, 100000, false, false, 1, 100000, 1025",
    "2, 64, false, true, 1, 64, 1",
    "2, 65, false, false, 1, 65, 2",
    "257, 2, false, true, 1, 2, 2",
    "63, 1000, true, false, 1, 1000, 63",
    "64, 1000, true, true, 8, 125, 1",
    "64, 1000, false, false, 1, 1000, 64",
    "256, 128, true, true, 1, 128, 1",
    "256, 129, true, true, 2, 65, 1",
    "1000, 1000000, true, true, 256, 3907, 4",
    "262144, 1000, true, true, 1, 1000, 1024",
  })
  void cutOfAReduction_dependsOnSizesAndStridesAlone(
      long results,
      long elements,
      boolean isAcross,
      boolean columns,
      long splits,
      long chunk,
      long blocks) {
    ReductionPlan plan = plan(results, elements, isAcross);
    ReductionArgument first = plan.first();
    assertThat(first.results()).isEqualTo(results);
    assertThat(first.elements()).isEqualTo(elements);
    assertThat(first.columns()).isEqualTo(columns);
    assertThat(first.splits()).isEqualTo(splits);
    assertThat(first.chunk()).isEqualTo(chunk);
    assertThat(ReductionPlan.blocks(first)).isEqualTo(blocks);
    assertThat(first.toPartial()).isEqualTo(splits > 1);
    assertThat(plan.second() != null).isEqualTo(splits > 1);
  }

  @Test
  void onePass_writesTheResultsWhereTheyAre() {
    ReductionPlan plan = plan(2, 10, false);
    assertThat(plan.second()).isNull();
    for (ReductionArgument pass : new ReductionArgument[] {plan.first(), plan.inOnePass()}) {
      assertThat(pass.inOffset()).isEqualTo(IN);
      assertThat(pass.outOffset()).isEqualTo(OUT);
      assertThat(pass.fromPartial()).isFalse();
      assertThat(pass.toPartial()).isFalse();
    }
  }

  /** The parts have memory of their own, from its start on. */
  @Test
  void firstOfTwoPasses_writesParts_andTheSecondTheResults() {
    ReductionPlan plan = plan(2, 10_000, false);
    ReductionArgument first = plan.first();
    assertThat(first.inOffset()).isEqualTo(IN);
    assertThat(first.outOffset()).isZero();
    assertThat(first.fromPartial()).isFalse();
    ReductionArgument second = Objects.requireNonNull(plan.second());
    assertThat(second.inOffset()).isZero();
    assertThat(second.outOffset()).isEqualTo(OUT);
    assertThat(second.results()).isEqualTo(2);
    assertThat(second.elements()).isEqualTo(first.splits()).isEqualTo(3);
    assertThat(second.splits()).isEqualTo(1);
    assertThat(second.chunk()).isEqualTo(3);
    assertThat(second.columns()).isFalse();
    assertThat(second.fromPartial()).isTrue();
    assertThat(second.toPartial()).isFalse();
    assertThat(second.total()).as("what a mean divides by").isEqualTo(10_000);
    assertThat(ReductionPlan.blocks(second)).isEqualTo(2);
  }

  @Test
  void oneThread_reducesInOnePass_whatADeviceDoesInTwo() {
    for (boolean isAcross : new boolean[] {false, true}) {
      ReductionPlan plan = plan(100, 100_000, isAcross);
      assertThat(plan.second()).isNotNull();
      ReductionArgument whole = plan.inOnePass();
      assertThat(whole.results()).isEqualTo(100);
      assertThat(whole.elements()).isEqualTo(100_000);
      assertThat(whole.splits()).isEqualTo(1);
      assertThat(whole.chunk()).isEqualTo(100_000);
      assertThat(whole.total()).isEqualTo(100_000);
      assertThat(whole.inOffset()).isEqualTo(IN);
      assertThat(whole.outOffset()).isEqualTo(OUT);
      assertThat(whole.columns()).isFalse();
      assertThat(whole.fromPartial()).isFalse();
      assertThat(whole.toPartial()).isFalse();
      assertThat(whole.keptShape()).containsExactly(100);
      assertThat(whole.keptStride()).containsExactly(isAcross ? 4 : 400_000);
      assertThat(whole.outStride()).containsExactly(4);
      assertThat(whole.reducedShape()).containsExactly(100_000);
      assertThat(whole.reducedStride()).containsExactly(isAcross ? 400 : 4);
    }
  }

  /** Steps back are as far as steps on. */
  @Test
  void neighbours_areFoundWhateverTheirDirection() {
    Axes kept = axes(64, -4, 4);
    assertThat(ReductionPlan.of(kept, axes(1000, -256), 0, 0).first().columns()).isTrue();
    Axes far = axes(64, -4000, 4);
    assertThat(ReductionPlan.of(far, axes(1000, -4), 0, 0).first().columns()).isFalse();
    assertThat(ReductionPlan.of(kept, axes(1000, 4), 0, 0).first().columns())
        .as("as near as each other")
        .isFalse();
  }
}
