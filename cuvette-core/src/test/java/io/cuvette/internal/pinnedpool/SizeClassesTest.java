package io.cuvette.internal.pinnedpool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.internal.index.Seeds;
import org.junit.jupiter.api.Test;

class SizeClassesTest {
  @Test
  void everyClass_beginsRightAfterTheOneBelow() {
    long below = 0;
    for (int index = 0; index < SizeClasses.COUNT; index++) {
      long bytes = SizeClasses.classBytes(index);
      assertThat(bytes).as("class %d", index).isGreaterThan(below);
      assertThat(bytes % 512).as("class %d", index).isZero();
      assertThat(SizeClasses.classOf(below + 1)).isEqualTo(index);
      assertThat(SizeClasses.classOf(bytes - 1)).isEqualTo(index);
      assertThat(SizeClasses.classOf(bytes)).isEqualTo(index);
      below = bytes;
    }
    assertThat(below).isEqualTo(SizeClasses.MAX_BYTES);
  }

  @Test
  void everyClass_wastesAtMostAnEighthOrLessThanOneUnit() {
    for (int index = 1; index < SizeClasses.COUNT; index++) {
      long bytes = SizeClasses.classBytes(index);
      long worst = bytes - (SizeClasses.classBytes(index - 1) + 1);
      if (bytes > 4096) {
        assertThat(worst).as("class %d", index).isLessThanOrEqualTo(bytes / 8);
      } else {
        assertThat(worst).as("class %d", index).isLessThan(512);
      }
    }
  }

  @Test
  void knownSizes_haveTheirClasses() {
    assertThat(classBytesOf(1)).isEqualTo(512);
    assertThat(classBytesOf(513)).isEqualTo(1024);
    assertThat(classBytesOf(4097)).isEqualTo(4608);
    assertThat(classBytesOf(8193)).isEqualTo(9216);
    assertThat(classBytesOf(10L << 30)).isEqualTo(10L << 30);
    assertThat(classBytesOf((1L << 30) + 1)).isEqualTo((1L << 30) + (1L << 27));
  }

  @Test
  void randomSizes_fitTheirClassAndNoSmaller() {
    Seeds.forEach(
        20,
        random -> {
          for (int i = 0; i < 1000; i++) {
            long bytes = random.nextLong(1, SizeClasses.MAX_BYTES) >>> random.nextInt(54);
            int index = SizeClasses.classOf(Math.max(1, bytes));
            assertThat(SizeClasses.classBytes(index)).isGreaterThanOrEqualTo(bytes);
            assertThat(index == 0 || SizeClasses.classBytes(index - 1) < bytes).isTrue();
          }
        });
  }

  @Test
  void sizesWithoutAClass_areRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SizeClasses.classOf(0))
        .withMessage("bytes: 0 (expected: 1 to 9223372036854775296)");
    for (long bytes : new long[] {-1, SizeClasses.MAX_BYTES + 1, Long.MAX_VALUE}) {
      assertThatIllegalArgumentException().isThrownBy(() -> SizeClasses.classOf(bytes));
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SizeClasses.classBytes(416))
        .withMessage("index: 416 (expected: 0 to 415)");
    assertThatIllegalArgumentException().isThrownBy(() -> SizeClasses.classBytes(-1));
  }

  private static long classBytesOf(long bytes) {
    return SizeClasses.classBytes(SizeClasses.classOf(bytes));
  }
}
