package io.cuvette.sim.internal.kernel;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import io.cuvette.sim.GridFunction;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedParameter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * Multiplies matrices as cuBLAS does, in double, rounded at the end. It runs as a kernel: in order
 * of its stream, in captures, and seen by those who watch launches. Stateless.
 */
public final class ProductTwin implements GridFunction {
  private static final String NAME = "cuvette_simulated_gemm";
  private static final int NUMBERS = 13;
  private static final int PRODUCT = 3 * Long.BYTES;
  private static final int BYTES = PRODUCT + NUMBERS * Long.BYTES;
  private static final int BFLOAT16_SHIFT = 16;

  /** The kernel. */
  public static final SimulatedKernel KERNEL =
      SimulatedKernel.of(
          NAME,
          new ProductTwin(),
          SimulatedParameter.POINTER,
          SimulatedParameter.POINTER,
          SimulatedParameter.POINTER,
          SimulatedParameter.struct(NUMBERS * Long.BYTES, Long.BYTES));

  /** Where its parameters lie. */
  public static final List<KernelParameter> LAYOUT =
      List.of(
          new KernelParameter(0, Long.BYTES),
          new KernelParameter(Long.BYTES, Long.BYTES),
          new KernelParameter(2 * Long.BYTES, Long.BYTES),
          new KernelParameter(PRODUCT, NUMBERS * Long.BYTES));

  /** What is multiplied, as parameters. */
  public static LaunchParameters parameters(MatrixProduct p, long c, long a, long b) {
    MemorySegment values = Arena.ofAuto().allocate(BYTES, Long.BYTES);
    long[] numbers = {
      c,
      a,
      b,
      p.type().code(),
      p.rows(),
      p.columns(),
      p.inner(),
      p.a().transposed() ? 1 : 0,
      p.a().leading(),
      p.a().stride(),
      p.b().transposed() ? 1 : 0,
      p.b().leading(),
      p.b().stride(),
      p.c().leading(),
      p.c().stride(),
      p.batch()
    };
    MemorySegment.copy(numbers, 0, values, JAVA_LONG, 0, numbers.length);
    return new LaunchParameters(values, LAYOUT);
  }

  private static MatrixProduct product(MemorySegment s) {
    long[] n = s.toArray(JAVA_LONG);
    return new MatrixProduct(
        type(n[0]),
        n[1],
        n[2],
        n[3],
        new MatrixProduct.Operand(n[4] == 1, n[5], n[6]),
        new MatrixProduct.Operand(n[7] == 1, n[8], n[9]),
        new MatrixProduct.Operand(false, n[10], n[11]),
        n[12]);
  }

  private static MatrixType type(long code) {
    return Arrays.stream(MatrixType.values())
        .filter(each -> each.code() == code)
        .findFirst()
        .orElseThrow();
  }

  @Override
  public void run(KernelThread thread) {
    MatrixProduct p = product(thread.struct(PRODUCT / Long.BYTES));
    Matrix lastA = null;
    Matrix lastB = null;
    int bytes = p.type().bytes();
    for (long i = 0; i < p.batch(); i++) {
      if (lastA == null || p.a().stride() > 0) {
        long at = thread.pointer(1) + i * p.a().stride() * bytes;
        lastA = Matrix.read(thread, at, p.type(), p.a(), p.rows(), p.inner());
      }
      if (lastB == null || p.b().stride() > 0) {
        long at = thread.pointer(2) + i * p.b().stride() * bytes;
        lastB = Matrix.read(thread, at, p.type(), p.b(), p.inner(), p.columns());
      }
      long at = thread.pointer(0) + i * p.c().stride() * bytes;
      multiply(thread, p, at, lastA, lastB);
    }
  }

  /** A matrix by columns; without imaginary parts unless it is complex. */
  private static final class Matrix {
    final double[][] re;
    final double[][] im;

    Matrix(double[][] re, double[][] im) {
      this.re = re;
      this.im = im;
    }

    static Matrix read(
        KernelThread thread,
        long at,
        MatrixType type,
        MatrixProduct.Operand lies,
        long rows,
        long columns) {
      int m = Math.toIntExact(rows);
      int n = Math.toIntExact(columns);
      double[][] re = new double[n][m];
      double[][] im = type.isComplex() ? new double[n][m] : re;
      int length = lies.transposed() ? n : m;
      int lines = lies.transposed() ? m : n;
      MemorySegment line =
          MemorySegment.ofArray(new long[length * type.bytes() / Long.BYTES + 1])
              .asSlice(0, (long) length * type.bytes());
      for (int j = 0; j < lines; j++) {
        thread.getBytes(at + j * lies.leading() * type.bytes(), line);
        for (int i = 0; i < length; i++) {
          int row = lies.transposed() ? j : i;
          int column = lies.transposed() ? i : j;
          re[column][row] = part(type, line, i, 0);
          if (type.isComplex()) {
            im[column][row] = part(type, line, i, 1);
          }
        }
      }
      return new Matrix(re, im);
    }
  }

  private static double part(MatrixType type, MemorySegment line, long i, int part) {
    return switch (type) {
      case HALF -> Float.float16ToFloat(line.getAtIndex(JAVA_SHORT, i));
      case BFLOAT16 -> Float.intBitsToFloat(line.getAtIndex(JAVA_SHORT, i) << BFLOAT16_SHIFT);
      case FLOAT -> line.getAtIndex(JAVA_FLOAT, i);
      case DOUBLE -> line.getAtIndex(JAVA_DOUBLE, i);
      case COMPLEX_FLOAT -> line.getAtIndex(JAVA_FLOAT, 2 * i + part);
      case COMPLEX_DOUBLE -> line.getAtIndex(JAVA_DOUBLE, 2 * i + part);
    };
  }

  private static void put(MatrixType type, MemorySegment line, long i, double re, double im) {
    switch (type) {
      case HALF -> line.setAtIndex(JAVA_SHORT, i, Float.floatToFloat16((float) re));
      case BFLOAT16 -> line.setAtIndex(JAVA_SHORT, i, bfloat((float) re));
      case FLOAT -> line.setAtIndex(JAVA_FLOAT, i, (float) re);
      case DOUBLE -> line.setAtIndex(JAVA_DOUBLE, i, re);
      case COMPLEX_FLOAT -> {
        line.setAtIndex(JAVA_FLOAT, 2 * i, (float) re);
        line.setAtIndex(JAVA_FLOAT, 2 * i + 1, (float) im);
      }
      case COMPLEX_DOUBLE -> {
        line.setAtIndex(JAVA_DOUBLE, 2 * i, re);
        line.setAtIndex(JAVA_DOUBLE, 2 * i + 1, im);
      }
    }
  }

  private static short bfloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    int odd = (bits >>> BFLOAT16_SHIFT) & 1;
    int rounded = (bits + 0x7FFF + odd) >>> BFLOAT16_SHIFT;
    return (short) (Float.isNaN(value) ? 0x7FFF : rounded);
  }

  private static void multiply(KernelThread thread, MatrixProduct p, long at, Matrix a, Matrix b) {
    int m = (int) p.rows();
    double[] re = new double[m];
    double[] im = new double[p.type().isComplex() ? m : 0];
    int bytes = p.type().bytes();
    MemorySegment line =
        MemorySegment.ofArray(new long[m * bytes / Long.BYTES + 1]).asSlice(0, (long) m * bytes);
    for (int j = 0; j < b.re.length; j++) {
      Arrays.fill(re, 0);
      Arrays.fill(im, 0);
      for (int l = 0; l < a.re.length; l++) {
        add(re, a.re[l], b.re[j][l]);
        if (im.length > 0) {
          add(re, a.im[l], -b.im[j][l]);
          add(im, a.re[l], b.im[j][l]);
          add(im, a.im[l], b.re[j][l]);
        }
      }
      for (int i = 0; i < m; i++) {
        put(p.type(), line, i, re[i], im.length > 0 ? im[i] : 0);
      }
      thread.setBytes(at + j * p.c().leading() * bytes, line);
    }
  }

  private static void add(double[] to, double[] column, double factor) {
    for (int i = 0; i < to.length; i++) {
      to[i] += column[i] * factor;
    }
  }
}
