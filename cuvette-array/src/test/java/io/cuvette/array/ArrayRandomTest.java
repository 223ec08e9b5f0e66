package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT16;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT64;
import static io.cuvette.array.ElementType.INT8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import java.util.Arrays;
import java.util.stream.DoubleStream;
import java.util.stream.LongStream;

/** Random numbers are those of the seed, on devices and on the host. */
class ArrayRandomTest {
  private static final int MANY = 100_001;

  @CudaTest
  void uniformNumbersAndIntegers_areTheSameOnDeviceAndHost_bitForBit(Cuda cuda) {
    ArrayRandom<CudaArray> onDevice = ArrayRandom.of(CudaArrays.of(cuda), 42);
    ArrayRandom<HostArray> onHost = ArrayRandom.of(HostArrays.of(cuda), 42);
    for (int round = 0; round < 2; round++) {
      for (ElementType type : new ElementType[] {FLOAT32, FLOAT64}) {
        try (CudaArray device = onDevice.uniform(type, 101, 3);
            HostArray copy = device.toHost();
            HostArray host = onHost.uniform(type, 101, 3)) {
          for (long[] at : Indices.of(101, 3)) {
            assertThat(copy.getDouble(at)).isEqualTo(host.getDouble(at)).isBetween(0.0, 1.0);
          }
        }
      }
      for (ElementType type : ElementType.values()) {
        if (type.isInteger()) {
          try (CudaArray device = onDevice.integers(type, 3, 100, 77);
              HostArray copy = device.toHost();
              HostArray host = onHost.integers(type, 3, 100, 77)) {
            for (long i = 0; i < 77; i++) {
              assertThat(copy.getLong(i)).isEqualTo(host.getLong(i)).isBetween(3L, 99L);
            }
          }
        }
      }
    }
  }

  @CudaTest
  void normalNumbers_areCloseOnDeviceAndHost(Cuda cuda) {
    for (ElementType type : new ElementType[] {FLOAT32, FLOAT64}) {
      double rounding = type == FLOAT32 ? 1e-6 : 1e-14;
      try (CudaArray device = ArrayRandom.of(CudaArrays.of(cuda), 7).normal(type, 10, 2, MANY);
          HostArray copy = device.toHost();
          HostArray host = ArrayRandom.of(HostArrays.of(cuda), 7).normal(type, 10, 2, MANY)) {
        double[] values = new double[MANY];
        for (int i = 0; i < MANY; i++) {
          values[i] = copy.getDouble(i);
          double distance = Math.max(1, Math.abs(values[i] - 10) / 2);
          double unit = 10 * Math.ulp(type == FLOAT32 ? 1f : 1.0);
          assertThat(values[i])
              .isCloseTo(host.getDouble(i), within(2 * rounding * distance + unit));
        }
        assertMoments(values, 10, 2);
      }
    }
  }

  /** Within 5 standard deviations of each. */
  private static void assertMoments(double[] values, double mean, double deviation) {
    double n = values.length;
    double average = DoubleStream.of(values).average().orElseThrow();
    double square =
        DoubleStream.of(values).map(x -> (x - mean) * (x - mean)).average().orElseThrow();
    assertThat(average).isCloseTo(mean, within(5 * deviation / Math.sqrt(n)));
    assertThat(square)
        .isCloseTo(deviation * deviation, within(5 * deviation * deviation * Math.sqrt(2 / n)));
  }

  @CudaTest
  void uniformNumbers_areEvenlyDistributed(Cuda cuda) {
    try (CudaArray device = ArrayRandom.of(CudaArrays.of(cuda), 9).random(MANY)) {
      double[] values = device.toArray(double[].class);
      assertThat(DoubleStream.of(values).average().orElseThrow())
          .isCloseTo(0.5, within(5 / Math.sqrt(12.0 * MANY)));
      int[] counts = new int[10];
      DoubleStream.of(values).forEach(x -> counts[(int) (x * 10)]++);
      assertThat(Arrays.stream(counts).min().orElseThrow()).isGreaterThan(MANY / 10 - 500);
    }
  }

  @CudaTest
  void integers_reachBothEnds_alsoOfTheirType(Cuda cuda) {
    ArrayRandom<CudaArray> random = ArrayRandom.of(CudaArrays.of(cuda), 1);
    try (CudaArray bytes = random.integers(INT8, -128, 128, MANY);
        CudaArray longs = random.integers(INT64, Long.MIN_VALUE, Long.MAX_VALUE, MANY)) {
      byte[] values = bytes.toArray(byte[].class);
      boolean[] seen = new boolean[256];
      for (byte value : values) {
        seen[value + 128] = true;
      }
      assertThat(seen).containsOnly(true);
      assertThat(LongStream.of(longs.toArray(long[].class)).filter(x -> x < 0).count())
          .isBetween((long) (MANY / 2 - 1000), (long) (MANY / 2 + 1000));
    }
  }

  @CudaTest
  void callsGoOnWhereTheLastOneEnded_andOtherSeedsDiffer(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    ArrayRandom<CudaArray> random = ArrayRandom.of(cp, 5);
    try (CudaArray all = ArrayRandom.of(cp, 5).uniform(FLOAT32, 12);
        CudaArray first = random.uniform(FLOAT32, 8);
        CudaArray second = random.uniform(FLOAT32, 4);
        CudaArray other = ArrayRandom.of(cp, 6).uniform(FLOAT32, 12)) {
      float[] values = all.toArray(float[].class);
      assertThat(first.toArray(float[].class)).isEqualTo(Arrays.copyOf(values, 8));
      assertThat(second.toArray(float[].class)).isEqualTo(Arrays.copyOfRange(values, 8, 12));
      assertThat(other.toArray(float[].class)).isNotEqualTo(values);
      assertThat(ArrayRandom.of(cp).seed()).isNotEqualTo(ArrayRandom.of(cp).seed());
    }
  }

  @CudaTest
  void whatCannotBeDrawn_isRefused(Cuda cuda) {
    ArrayRandom<CudaArray> random = ArrayRandom.of(CudaArrays.of(cuda), 1);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> random.uniform(FLOAT16, 3))
        .withMessage("type: FLOAT16 (expected: FLOAT32 or FLOAT64; convert them with asType)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> random.integers(FLOAT32, 0, 3, 3))
        .withMessage("type: FLOAT32 (expected: an integer type)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> random.integers(INT8, 5, 5, 3))
        .withMessage("high: 5 (expected: > 5, the least integer)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> random.integers(INT8, 0, 300, 3))
        .withMessageContaining("value: 299");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> random.normal(FLOAT32, Double.NaN, 1, 3))
        .withMessage("mean: NaN (expected: finite)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> random.normal(FLOAT32, 0, -1, 3))
        .withMessage("deviation: -1.0 (expected: finite and >= 0)");
    try (CudaArray none = random.random(0, 5)) {
      assertThat(none.size()).isZero();
    }
  }
}
