package io.cuvette.array;

import java.util.Random;

/** Makes arrays with random shapes, layouts and values, with each special value of their type. */
final class RandomArrays {
  private static final double[] SPECIAL = {
    Double.NaN,
    Double.POSITIVE_INFINITY,
    Double.NEGATIVE_INFINITY,
    0,
    -0.0,
    1,
    -1,
    0.5,
    Double.MIN_VALUE,
    Double.MAX_VALUE,
    1e30,
    -1e-30,
    65504,
    2.5,
    -2.5
  };

  private final Random random;

  RandomArrays(long seed) {
    random = new Random(seed);
  }

  int below(int bound) {
    return random.nextInt(bound);
  }

  /** A shape with some axes. */
  long[] shape(int mostRank, int mostSize) {
    long[] shape = new long[random.nextInt(mostRank + 1)];
    for (int i = 0; i < shape.length; i++) {
      shape[i] = 1 + random.nextInt(mostSize);
    }
    return shape;
  }

  /** A value of a type, now and then a special one. */
  Complex value(ElementType type) {
    if (type.isComplex()) {
      return new Complex(value(type.realType()).real(), value(type.realType()).real());
    }
    if (type == ElementType.BOOLEAN) {
      return new Complex(random.nextInt(2), 0);
    }
    if (type.isInteger()) {
      long bits = random.nextInt(3) == 0 ? random.nextLong() : random.nextInt(21) - 10;
      return new Complex(bits, 0);
    }
    double value =
        switch (random.nextInt(6)) {
          case 0 -> SPECIAL[random.nextInt(SPECIAL.length)];
          case 1 -> random.nextInt(21) - 10;
          case 2 -> random.nextGaussian() * 1000;
          default -> random.nextGaussian();
        };
    return new Complex(value, 0);
  }

  /** Fills an array of the host. */
  void fill(HostArray a) {
    long[] index = new long[a.rank()];
    for (long i = 0; i < a.size(); i++) {
      long rest = i;
      for (int d = index.length - 1; d >= 0; d--) {
        index[d] = rest % a.shape()[d];
        rest /= a.shape()[d];
      }
      if (a.type().isInteger()) {
        int unused = Long.SIZE - 8 * a.type().bytes();
        long bits = random.nextInt(3) == 0 ? random.nextLong() : random.nextInt(21) - 10;
        boolean isUnsigned = a.type().isUnsigned();
        long value = isUnsigned ? bits << unused >>> unused : bits << unused >> unused;
        a.setLong(isUnsigned ? value & Long.MAX_VALUE : value, index);
      } else if (a.type().isComplex()) {
        a.setComplex(value(a.type()), index);
      } else {
        a.setDouble(value(a.type()).real(), index);
      }
    }
  }

  /**
   * An array of a shape as a random view of a larger one: transposed, in steps, reversed. The
   * larger one is the owner.
   */
  <A extends NdArray> View view(ArrayModule<A> module, ElementType type, long... shape) {
    int rank = shape.length;
    int[] order = new int[rank];
    for (int i = 0; i < rank; i++) {
      int at = random.nextInt(i + 1);
      order[i] = order[at];
      order[at] = i;
    }
    boolean plain = random.nextBoolean();
    long[] larger = new long[rank];
    Range[] ranges = new Range[rank];
    for (int i = 0; i < rank; i++) {
      long size = shape[order[i]];
      switch (plain ? 0 : random.nextInt(4)) {
        case 1 -> {
          larger[i] = size * 2;
          ranges[i] = Range.all().step(2);
        }
        case 2 -> {
          larger[i] = size;
          ranges[i] = Range.reversed();
        }
        case 3 -> {
          larger[i] = size + 2;
          ranges[i] = Range.of(1, size + 1);
        }
        default -> {
          larger[i] = size;
          ranges[i] = Range.all();
        }
      }
    }
    int[] back = new int[rank];
    for (int i = 0; i < rank; i++) {
      back[order[i]] = i;
    }
    try (HostArray host = HostArrays.of(module.cuda()).empty(type, larger)) {
      fill(host);
      A whole = module.array(host);
      return new View(whole, whole.slice(ranges).transpose(back));
    }
  }

  /** A view and the array that has the memory. */
  record View(NdArray owner, NdArray array) implements AutoCloseable {
    @Override
    public void close() {
      owner.close();
    }
  }
}
