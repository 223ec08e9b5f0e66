package io.cuvette.array;

import static io.cuvette.array.ElementType.BFLOAT16;
import static io.cuvette.array.ElementType.BOOLEAN;
import static io.cuvette.array.ElementType.COMPLEX128;
import static io.cuvette.array.ElementType.COMPLEX64;
import static io.cuvette.array.ElementType.FLOAT16;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT16;
import static io.cuvette.array.ElementType.INT32;
import static io.cuvette.array.ElementType.INT64;
import static io.cuvette.array.ElementType.INT8;
import static io.cuvette.array.ElementType.UINT16;
import static io.cuvette.array.ElementType.UINT32;
import static io.cuvette.array.ElementType.UINT64;
import static io.cuvette.array.ElementType.UINT8;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.MemorySegment;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.IntToDoubleFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Conversions against exact decimal arithmetic. */
class ConversionTest {
  private static final int VALUES = 20_000;

  private static final double[] EDGES = {
    0.0,
    -0.0,
    0.5,
    -0.5,
    1,
    -1,
    1.5,
    2.5,
    126.5,
    127,
    127.5,
    128,
    -128,
    -128.5,
    -129,
    254.9,
    255,
    255.5,
    256,
    32767,
    32768,
    -32768.9,
    65504,
    65519.99,
    65520,
    65535,
    65536,
    0x1p31 - 1,
    0x1p31,
    -0x1p31,
    -0x1p31 - 1,
    0x1p32 - 1,
    0x1p32,
    0x1p63 - 1024,
    0x1p63,
    -0x1p63,
    0x1p64 - 2048,
    0x1p64,
    1e300,
    -1e300,
    Double.MIN_VALUE,
    Float.MIN_VALUE,
    0x1p-24,
    0x1p-25,
    0x1.8p-25,
    0x1p-133,
    Float.MAX_VALUE,
    0x1.ffffffp127,
    Double.MAX_VALUE,
    Double.NaN,
    Double.POSITIVE_INFINITY,
    Double.NEGATIVE_INFINITY
  };

  private static List<Double> doubles() {
    List<Double> values = new ArrayList<>();
    for (double edge : EDGES) {
      values.add(edge);
      values.add(Math.nextUp(edge));
      values.add(Math.nextDown(edge));
    }
    Random random = new Random(3);
    for (int i = 0; i < VALUES; i++) {
      values.add(Double.longBitsToDouble(random.nextLong()));
      values.add(random.nextGaussian() * Math.scalb(1.0, random.nextInt(-30, 70)));
      // near the middle of two neighbours of 2 bytes
      short bits = (short) random.nextInt(0x7bff);
      double half = Float.float16ToFloat(bits);
      double middle = (half + Float.float16ToFloat((short) (bits + 1))) / 2;
      values.add(middle + random.nextInt(-1, 2) * Math.ulp(middle));
      double brain = Float.intBitsToFloat(random.nextInt(0x7f7f) << 16);
      values.add(brain + brain / 512 + random.nextInt(-1, 2) * Math.ulp(brain));
    }
    return values;
  }

  private static byte[] bits(ElementType type) {
    return new byte[type.bytes()];
  }

  private static MemorySegment converted(double value, ElementType to) {
    MemorySegment target = MemorySegment.ofArray(bits(to));
    MemorySegment source = MemorySegment.ofArray(new double[] {value});
    Elements.convert(FLOAT64, source, 0, to, target, 0);
    return target;
  }

  @ParameterizedTest
  @EnumSource(names = {"INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"})
  void realToInteger_isCutAndHeldInRange(ElementType type) {
    int bits = 8 * type.bytes();
    BigInteger least = type.isUnsigned() ? BigInteger.ZERO : BigInteger.TWO.pow(bits - 1).negate();
    BigInteger most =
        BigInteger.TWO.pow(type.isUnsigned() ? bits : bits - 1).subtract(BigInteger.ONE);
    for (double value : doubles()) {
      BigInteger expected;
      if (Double.isNaN(value)) {
        expected = BigInteger.ZERO;
      } else if (Double.isInfinite(value)) {
        expected = value > 0 ? most : least;
      } else {
        expected = new BigDecimal(value).toBigInteger().max(least).min(most);
      }
      long found = Elements.integer(type, converted(value, type), 0);
      assertThat(
              type == UINT64
                  ? new BigInteger(Long.toUnsignedString(found))
                  : BigInteger.valueOf(found))
          .as("%s of %s", type, value)
          .isEqualTo(expected);
    }
  }

  @Test
  void realToHalf_isTheNearest() {
    nearest(FLOAT16, bits -> Float.float16ToFloat((short) bits), 0x7c00, 65504, 65520);
  }

  @Test
  void realToBfloat16_isTheNearest() {
    double most = Float.intBitsToFloat(0x7f7f_0000);
    nearest(BFLOAT16, bits -> Float.intBitsToFloat(bits << 16), 0x7f80, most, most + 0x1p119);
  }

  /** All positive numbers of the type are looked through by halves. */
  private static void nearest(
      ElementType type, IntToDoubleFunction of, int infinity, double most, double overflow) {
    for (double value : doubles()) {
      double found = Elements.real(type, converted(value, type), 0);
      String what = "%s of %s (%a)".formatted(type, value, value);
      if (Double.isNaN(value)) {
        assertThat(found).as(what).isNaN();
        continue;
      }
      assertThat(Math.copySign(1, found)).as(what).isEqualTo(Math.copySign(1, value));
      double size = Math.abs(value);
      if (size >= overflow) {
        assertThat(Math.abs(found)).as(what).isInfinite();
      } else if (size >= most) {
        assertThat(Math.abs(found)).as(what).isEqualTo(most);
      } else {
        int low = 0;
        int high = infinity - 1;
        while (high - low > 1) {
          int middle = (low + high) >>> 1;
          if (of.applyAsDouble(middle) <= size) {
            low = middle;
          } else {
            high = middle;
          }
        }
        BigDecimal down = new BigDecimal(size).subtract(new BigDecimal(of.applyAsDouble(low)));
        BigDecimal up = new BigDecimal(of.applyAsDouble(high)).subtract(new BigDecimal(size));
        int side = down.compareTo(up);
        int chosen = side < 0 || (side == 0 && low % 2 == 0) ? low : high;
        assertThat(Math.abs(found)).as(what).isEqualTo(of.applyAsDouble(chosen));
      }
    }
  }

  @Test
  void integerToReal_isTheNearest() {
    Random random = new Random(5);
    for (int i = 0; i < VALUES; i++) {
      long value = random.nextLong() >> random.nextInt(64) | (i % 3 == 0 ? 1 : 0);
      if (i % 4 == 0) { // near the middle of two bfloat16
        value = (0x181L << 54 - random.nextInt(20)) + random.nextInt(-1, 2);
      }
      MemorySegment source = MemorySegment.ofArray(new long[] {value});
      for (ElementType from : List.of(INT64, UINT64)) {
        BigInteger exact =
            from == INT64
                ? BigInteger.valueOf(value)
                : new BigInteger(Long.toUnsignedString(value));
        MemorySegment target = MemorySegment.ofArray(new double[2]);
        Elements.convert(from, source, 0, FLOAT64, target, 0);
        assertThat(Elements.real(FLOAT64, target, 0)).isEqualTo(exact.doubleValue());
        Elements.convert(from, source, 0, FLOAT32, target, 0);
        assertThat((float) Elements.real(FLOAT32, target, 0)).isEqualTo(exact.floatValue());
        Elements.convert(from, source, 0, BFLOAT16, target, 0);
        double found = Elements.real(BFLOAT16, target, 0);
        BigDecimal distance = new BigDecimal(found).subtract(new BigDecimal(exact)).abs();
        for (int step = -1; step <= 1; step += 2) {
          int bits = Float.floatToRawIntBits((float) found) >>> 16;
          float other = Float.intBitsToFloat(bits + step << 16);
          if (Float.isFinite(other) && found != 0) {
            BigDecimal otherDistance = new BigDecimal(other).subtract(new BigDecimal(exact)).abs();
            int side = distance.compareTo(otherDistance);
            assertThat(side < 0 || (side == 0 && bits % 2 == 0))
                .as("%s as %s, not %s", exact, found, other)
                .isTrue();
          }
        }
      }
    }
  }

  @CudaTest
  void types_areConvertedOnTheDevice(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    double[] values = {-1.9, 0, 2.5, 300, Double.NaN, Double.POSITIVE_INFINITY};
    try (CudaArray a = cp.array(values);
        CudaArray bytes = a.asType(INT8);
        CudaArray flags = a.asType(BOOLEAN);
        CudaArray complex = a.asType(COMPLEX64);
        CudaArray back = complex.asType(FLOAT64);
        CudaArray unsigned = a.asType(UINT16)) {
      assertThat(bytes.toArray(byte[].class)).containsExactly(-1, 0, 2, 127, 0, 127);
      assertThat(flags.toArray(boolean[].class))
          .containsExactly(true, false, true, true, true, true);
      assertThat(back.toArray(double[].class))
          .containsExactly((float) -1.9, 0, 2.5, 300, Double.NaN, Double.POSITIVE_INFINITY);
      assertThat(unsigned.toArray(char[].class))
          .containsExactly((char) 0, (char) 0, (char) 2, (char) 300, (char) 0, (char) 0xffff);
    }
  }

  @Test
  void integers_loseTheirUpperBits_andComplexNumbersTheirImaginaryPart() {
    MemorySegment source = MemorySegment.ofArray(new long[] {0x1_8000_80ffL, 0});
    MemorySegment target = MemorySegment.ofArray(new long[2]);
    Elements.convert(INT64, source, 0, INT8, target, 0);
    assertThat(Elements.integer(INT8, target, 0)).isEqualTo(-1);
    Elements.convert(INT64, source, 0, UINT8, target, 0);
    assertThat(Elements.integer(UINT8, target, 0)).isEqualTo(255);
    Elements.convert(INT64, source, 0, INT16, target, 0);
    assertThat(Elements.integer(INT16, target, 0)).isEqualTo((short) 0x80ff);
    Elements.convert(INT64, source, 0, UINT32, target, 0);
    assertThat(Elements.integer(UINT32, target, 0)).isEqualTo(0x8000_80ffL);
    MemorySegment complex = MemorySegment.ofArray(new double[] {0, 3});
    Elements.convert(COMPLEX128, complex, 0, BOOLEAN, target, 0);
    assertThat(Elements.integer(BOOLEAN, target, 0)).isEqualTo(1);
    Elements.convert(COMPLEX128, complex, 0, INT32, target, 0);
    assertThat(Elements.integer(INT32, target, 0)).isZero();
  }

  /** NumPy's table for these types, with bfloat16 beside it. */
  @Test
  void commonTypes_areThoseOfNumPy() {
    assertThat(INT8.commonWith(UINT8)).isEqualTo(INT16);
    assertThat(INT16.commonWith(UINT8)).isEqualTo(INT16);
    assertThat(INT32.commonWith(UINT32)).isEqualTo(INT64);
    assertThat(INT64.commonWith(UINT64)).isEqualTo(FLOAT64);
    assertThat(UINT8.commonWith(UINT16)).isEqualTo(UINT16);
    assertThat(BOOLEAN.commonWith(INT8)).isEqualTo(INT8);
    assertThat(BOOLEAN.commonWith(FLOAT16)).isEqualTo(FLOAT16);
    assertThat(INT8.commonWith(FLOAT16)).isEqualTo(FLOAT16);
    assertThat(INT16.commonWith(FLOAT16)).isEqualTo(FLOAT32);
    assertThat(UINT16.commonWith(FLOAT32)).isEqualTo(FLOAT32);
    assertThat(INT32.commonWith(FLOAT32)).isEqualTo(FLOAT64);
    assertThat(INT64.commonWith(FLOAT16)).isEqualTo(FLOAT64);
    assertThat(FLOAT16.commonWith(BFLOAT16)).isEqualTo(FLOAT32);
    assertThat(UINT8.commonWith(BFLOAT16)).isEqualTo(BFLOAT16);
    assertThat(INT16.commonWith(BFLOAT16)).isEqualTo(FLOAT32);
    assertThat(FLOAT16.commonWith(COMPLEX64)).isEqualTo(COMPLEX64);
    assertThat(INT32.commonWith(COMPLEX64)).isEqualTo(COMPLEX128);
    assertThat(FLOAT64.commonWith(COMPLEX64)).isEqualTo(COMPLEX128);
    assertThat(COMPLEX64.commonWith(COMPLEX128)).isEqualTo(COMPLEX128);
    for (ElementType a : ElementType.values()) {
      for (ElementType b : ElementType.values()) {
        assertThat(a.commonWith(b)).isEqualTo(b.commonWith(a));
        assertThat(a.commonWith(b).commonWith(a)).isEqualTo(a.commonWith(b));
      }
    }
  }
}
