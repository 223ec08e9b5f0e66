package io.cuvette.array.internal.twin;

import io.cuvette.array.ElementType;
import io.cuvette.array.Reduction;

/** What is made of the elements so far. For one thread. */
final class Fold {
  private final Reduction reduction;
  private final boolean isUnsigned;

  /** Whether it is kept in a long. */
  private final boolean isExact;

  private long bits;
  private double re;
  private double im;
  private long index = -1;

  Fold(Reduction reduction, ElementType type) {
    this.reduction = reduction;
    this.isUnsigned = type.isUnsigned();
    boolean isOfExact = type == ElementType.BOOLEAN || type.isInteger();
    boolean isTest = reduction == Reduction.ANY_TRUE || reduction == Reduction.ALL_TRUE;
    this.isExact = isTest || (isOfExact && reduction != Reduction.MEAN);
    this.bits = reduction == Reduction.PROD || reduction == Reduction.ALL_TRUE ? 1 : 0;
    this.re = reduction == Reduction.PROD ? 1 : 0;
  }

  /** Where the element is; -1 if there was none. */
  long index() {
    return index;
  }

  /** Takes elements, of which the first has a number. */
  void add(Lane lane, int count, long first) {
    for (int i = 0; i < count; i++) {
      switch (reduction) {
        case ANY_TRUE, ALL_TRUE -> test(isTrue(lane, i) ? 1 : 0);
        default -> take(lane, i, first + i);
      }
    }
  }

  /** Takes what another pass has kept. */
  void join(Lane lane, long its) {
    switch (reduction) {
      case ANY_TRUE, ALL_TRUE -> test(lane.bits[0]);
      default -> take(lane, 0, its);
    }
  }

  private static boolean isTrue(Lane lane, int i) {
    return lane.isExact()
        ? lane.bits[i] != 0
        : lane.re[i] != 0 || (lane.isComplex() && lane.im[i] != 0);
  }

  private void test(long value) {
    bits = reduction == Reduction.ANY_TRUE ? bits | value : bits & value;
  }

  private void take(Lane lane, int i, long its) {
    if (reduction.isOfOneElement()) {
      choose(lane, i, its);
    } else if (isExact) {
      bits = reduction == Reduction.PROD ? bits * lane.bits[i] : bits + lane.bits[i];
    } else {
      double x = lane.isExact() ? Codec.asDouble(lane.bits[i], isUnsigned) : lane.re[i];
      double y = lane.isComplex() ? lane.im[i] : 0;
      if (reduction != Reduction.PROD) {
        re += x;
        im += y;
      } else if (lane.isComplex()) {
        double before = re;
        re = before * x - im * y;
        im = before * y + im * x;
      } else {
        re *= x;
      }
    }
  }

  private void choose(Lane lane, int i, long its) {
    if (its < 0 || !(index < 0 || isBetter(lane, i, its))) {
      return;
    }
    index = its;
    if (isExact) {
      bits = lane.bits[i];
    } else {
      re = lane.re[i];
    }
  }

  private boolean isBetter(Lane lane, int i, long its) {
    if (!isExact && (Double.isNaN(re) || Double.isNaN(lane.re[i]))) {
      return Double.isNaN(lane.re[i]) && (!Double.isNaN(re) || its < index);
    }
    int order =
        isExact
            ? ExactFunctions.compare(lane.bits[i], bits, isUnsigned)
            : lane.re[i] < re ? -1 : lane.re[i] > re ? 1 : 0;
    boolean isLeast = reduction == Reduction.MIN || reduction == Reduction.ARGMIN;
    return order == 0 ? its < index : (order < 0) == isLeast;
  }

  /** Gives what is kept. */
  void put(Lane lane) {
    if (lane.isExact()) {
      lane.bits[0] = bits;
    } else {
      lane.re[0] = re;
      if (lane.isComplex()) {
        lane.im[0] = im;
      }
    }
  }

  /** Gives the result. */
  void finish(long total, Lane lane) {
    put(lane);
    if (reduction.isIndex()) {
      lane.bits[0] = index;
    } else if (reduction == Reduction.MEAN) {
      lane.re[0] = re / total;
      if (lane.isComplex()) {
        lane.im[0] = im / total;
      }
    }
  }
}
