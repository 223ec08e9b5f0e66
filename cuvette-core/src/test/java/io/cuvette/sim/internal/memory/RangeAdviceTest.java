package io.cuvette.sim.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What is said of pages of managed memory, of which the last may be there in part. */
class RangeAdviceTest {
  private static final long PAGE = 4096;

  private static int mostlyRead(RangeAdvice advice, long offset, long bytes) {
    return advice.common(offset, bytes, each -> each.readMostly() ? 1 : 0, -1);
  }

  @Test
  void advice_isOfTheWholePagesThatARangeTouches_andOfNoOthers() {
    long[] sizes = {4 * PAGE, 4 * PAGE - 1, 3 * PAGE + 1, 3 * PAGE + 100};
    for (long size : sizes) {
      RangeAdvice advice = new RangeAdvice(size);
      advice.change(PAGE + 5, PAGE + 1, each -> each.withReadMostly(true));
      assertThat(mostlyRead(advice, 0, PAGE)).isZero();
      assertThat(mostlyRead(advice, PAGE, 2 * PAGE)).isEqualTo(1);
      assertThat(mostlyRead(advice, 3 * PAGE, size - 3 * PAGE)).as("%d bytes", size).isZero();
      assertThat(mostlyRead(advice, 0, size)).isEqualTo(-1);
      advice.change(0, size, each -> each.withReadMostly(true));
      assertThat(mostlyRead(advice, 0, size)).isEqualTo(1);
    }
  }
}
