package io.cuvette.array;

import static io.cuvette.array.ElementType.COMPLEX128;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT32;
import static io.cuvette.array.ElementType.INT64;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;

/** What arrays on a device do that programs see. */
class ArraysTest {

  @CudaTest
  void nestedArray_goesToTheDeviceAndBack(Cuda cuda) {
    float[][] values = {{1, 2, 3}, {4, 5, 6}};
    try (CudaArray a = CudaArrays.of(cuda).array(values)) {
      assertThat(a.type()).isEqualTo(FLOAT32);
      assertThat(a.shape()).containsExactly(2, 3);
      assertThat(a.toArray(float[][].class)).isDeepEqualTo(values);
      assertThat(a.transpose().toArray(float[][].class))
          .isDeepEqualTo(new float[][] {{1, 4}, {2, 5}, {3, 6}});
      assertThat(a.slice(Range.at(1), Range.reversed()).toArray(float[].class))
          .containsExactly(6, 5, 4);
    }
  }

  @CudaTest
  void rowsOfJava_areGatheredAndScattered_orConvertedFirst(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    long[][][] deep = {{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}};
    boolean[][] flags = {{true, false}, {false, true}};
    try (CudaArray a = cp.array(deep);
        CudaArray converted = cp.array(FLOAT32, new int[][] {{1, -2}, {3, 4}});
        CudaArray truths = cp.array(flags);
        CudaArray none = cp.array(new int[2][0])) {
      assertThat(a.toArray(long[][][].class)).isDeepEqualTo(deep);
      assertThat(a.slice(Range.at(1)).toArray(long[][].class)).isDeepEqualTo(deep[1]);
      assertThat(a.slice(Range.all(), Range.from(1)).toArray(long[][][].class))
          .isDeepEqualTo(new long[][][] {{{3, 4}, {5, 6}}, {{9, 10}, {11, 12}}});
      assertThat(converted.toArray(float[][].class)).isDeepEqualTo(new float[][] {{1, -2}, {3, 4}});
      assertThat(truths.toArray(boolean[][].class)).isDeepEqualTo(flags);
      assertThat(none.toArray(int[][].class)).isDeepEqualTo(new int[2][0]);
    }
  }

  @CudaTest
  void values_fillArraysOfEachSize(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray doubles = cp.full(FLOAT64, 1.5, 3, 5);
        CudaArray complex = cp.full(COMPLEX128, new Complex(1, -2), 7);
        CudaArray some = cp.zeros(INT32, 4, 4)) {
      assertThat(doubles.toArray(double[][].class)[2]).containsOnly(1.5);
      some.slice(Range.all().step(2), Range.from(2)).fill(9);
      assertThat(some.toArray(int[][].class))
          .isDeepEqualTo(new int[][] {{0, 0, 9, 9}, {0, 0, 0, 0}, {0, 0, 9, 9}, {0, 0, 0, 0}});
      try (HostArray host = complex.toHost()) {
        assertThat(host.getComplex(6)).isEqualTo(new Complex(1, -2));
      }
    }
  }

  @CudaTest
  void sequence_isThatOfNumPy(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray numbers = cp.arange(INT64, 6);
        CudaArray square = numbers.reshape(2, -1).transpose().reshape(6)) {
      assertThat(square.isView()).isFalse();
      assertThat(square.toArray(long[].class)).containsExactly(0, 3, 1, 4, 2, 5);
    }
  }
}
