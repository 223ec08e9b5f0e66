package io.cuvette.array.internal.twin;

import io.cuvette.array.ElementType;

/**
 * The values of some elements of one type: BOOLEAN and integers as longs, of which only the bits of
 * the type count when they are stored, real numbers as doubles, complex numbers as two. For one
 * thread.
 */
final class Lane {
  /** The most elements, and how many are usual. */
  static final int MOST = 1 << 11;

  final ElementType type;
  final long[] bits;
  final double[] re;
  final double[] im;

  Lane(ElementType type, int room) {
    this.type = type;
    boolean isExact = type == ElementType.BOOLEAN || type.isInteger();
    bits = new long[isExact ? room : 0];
    re = new double[isExact ? 0 : room];
    im = new double[type.isComplex() ? room : 0];
  }

  /** How many elements there is room for. */
  int room() {
    return Math.max(bits.length, re.length);
  }

  /** Whether the values are longs. */
  boolean isExact() {
    return bits.length > 0;
  }

  boolean isComplex() {
    return im.length > 0;
  }

  /** Whether it is computed in float: each step rounds. */
  static boolean isSingle(ElementType type) {
    return type == ElementType.COMPLEX64 || (type.isFloating() && type != ElementType.FLOAT64);
  }
}
