package io.cuvette.array;

import java.util.Arrays;

/** Multiplies matrices on the host: in double, rounded at the end. Stateless. */
final class HostProducts {
  private HostProducts() {}

  /** Multiplies matrices, of which there are some. */
  static void multiply(HostArray c, HostArray a, HostArray b) {
    int rank = c.layout().rank();
    long[] batch = Arrays.copyOf(c.layout().sizes(), rank - 2);
    HostArray left = a.view(a.layout().broadcastTo(shape(batch, a.layout())));
    HostArray right = b.view(b.layout().broadcastTo(shape(batch, b.layout())));
    HostAccess.run(() -> each(c, left, right, batch), c.segment(), left.segment(), right.segment());
  }

  private static long[] shape(long[] batch, Layout layout) {
    return LayoutViews.joined(batch, layout.shape(-2), layout.shape(-1));
  }

  private static void each(HostArray c, HostArray a, HostArray b, long[] batch) {
    if (batch.length == 0) {
      one(c, a, b);
      return;
    }
    long[] rest = Arrays.copyOfRange(batch, 1, batch.length);
    for (long i = 0; i < batch[0]; i++) {
      Range at = Range.at(i);
      each(c.slice(at), a.slice(at), b.slice(at), rest);
    }
  }

  private static void one(HostArray c, HostArray a, HostArray b) {
    int n = Math.toIntExact(c.shape()[1]);
    int inner = Math.toIntExact(a.shape()[1]);
    boolean isComplex = c.type().isComplex();
    double[][] re = new double[inner][n];
    double[][] im = new double[isComplex ? inner : 0][n];
    for (int l = 0; l < inner; l++) {
      for (int j = 0; j < n; j++) {
        Complex value = b.getComplex(l, j);
        re[l][j] = value.real();
        if (isComplex) {
          im[l][j] = value.imaginary();
        }
      }
    }
    double[] sum = new double[n];
    double[] imaginary = new double[isComplex ? n : 0];
    for (long i = 0; i < c.shape()[0]; i++) {
      Arrays.fill(sum, 0);
      Arrays.fill(imaginary, 0);
      for (int l = 0; l < inner; l++) {
        Complex value = a.getComplex(i, l);
        add(sum, re[l], value.real());
        if (isComplex) {
          add(sum, im[l], -value.imaginary());
          add(imaginary, im[l], value.real());
          add(imaginary, re[l], value.imaginary());
        }
      }
      for (int j = 0; j < n; j++) {
        put(c, sum[j], isComplex ? imaginary[j] : 0, i, j);
      }
    }
  }

  private static void put(HostArray c, double re, double im, long row, long column) {
    if (c.type().isComplex()) {
      c.setComplex(new Complex(re, im), row, column);
    } else {
      c.setDouble(re, row, column);
    }
  }

  private static void add(double[] to, double[] row, double factor) {
    for (int j = 0; j < to.length; j++) {
      to[j] += row[j] * factor;
    }
  }
}
