package io.cuvette.array;

import io.cuvette.Scope;
import io.cuvette.array.internal.kernel.Distribution;
import io.cuvette.array.internal.kernel.DrawArgument;
import io.cuvette.array.internal.kernel.KernelNames;
import io.cuvette.array.internal.twin.Cells;
import io.cuvette.array.internal.twin.RandomTwin;
import java.security.SecureRandom;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Makes arrays of random numbers, by the generator Philox 4x32-10. The numbers depend on the seed,
 * on the calls before, and on nothing else: the same calls give the same numbers on each GPU, on a
 * simulated device and on the host. Uniform numbers and integers are the same bit for bit; normal
 * ones differ by at most 10<sup>-6</sup> (FLOAT32) or 10<sup>-14</sup> (FLOAT64) standard
 * deviations for each unit of their distance from the mean, and at least one.
 *
 * <p>The generator has 2<sup>64</sup> blocks of 128 bits; each call takes as many as it needs, of 2
 * numbers of FLOAT64, 4 of FLOAT32, or 2 integers.
 *
 * <p>Thread-safe: each call has blocks of its own. Which call of several threads has which, is not
 * determined.
 *
 * @param <A> the kind of array
 */
public final class ArrayRandom<A extends NdArray> {
  private final ArrayModule<A> module;
  private final long seed;
  private final AtomicLong nextBlock = new AtomicLong();

  private ArrayRandom(ArrayModule<A> module, long seed) {
    this.module = Objects.requireNonNull(module, "module");
    this.seed = seed;
  }

  /**
   * {@return a generator with a seed}
   *
   * @param module where the arrays are made
   * @param seed the seed, any long
   * @param <A> the kind of array
   */
  public static <A extends NdArray> ArrayRandom<A> of(ArrayModule<A> module, long seed) {
    return new ArrayRandom<>(module, seed);
  }

  /**
   * {@return a generator with a seed from the operating system}
   *
   * @param module where the arrays are made
   * @param <A> the kind of array
   */
  public static <A extends NdArray> ArrayRandom<A> of(ArrayModule<A> module) {
    return new ArrayRandom<>(module, new SecureRandom().nextLong());
  }

  /** {@return the seed} */
  public long seed() {
    return seed;
  }

  /**
   * {@return FLOAT64 numbers of [0, 1), evenly distributed, in order C}
   *
   * @param shape the size of each axis, >= 0
   */
  public A random(long... shape) {
    return uniform(ElementType.FLOAT64, shape);
  }

  /**
   * {@return numbers of [0, 1), evenly distributed, in order C: multiples of 2<sup>-24</sup> of
   * FLOAT32, of 2<sup>-53</sup> of FLOAT64}
   *
   * @param type FLOAT32 or FLOAT64
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for another type
   */
  public A uniform(ElementType type, long... shape) {
    return draw(Distribution.UNIFORM, checkFloating(type), 0, 0, shape);
  }

  /**
   * {@return numbers of the standard normal distribution, in order C}
   *
   * @param type FLOAT32 or FLOAT64
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for another type
   */
  public A standardNormal(ElementType type, long... shape) {
    return normal(type, 0, 1, shape);
  }

  /**
   * {@return numbers of a normal distribution, in order C}
   *
   * @param type FLOAT32 or FLOAT64
   * @param mean the mean, finite
   * @param deviation the standard deviation, finite and >= 0
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for another type or other numbers
   */
  public A normal(ElementType type, double mean, double deviation, long... shape) {
    if (!Double.isFinite(mean)) {
      throw new IllegalArgumentException("mean: %s (expected: finite)".formatted(mean));
    }
    if (!(deviation >= 0 && Double.isFinite(deviation))) {
      throw new IllegalArgumentException(
          "deviation: %s (expected: finite and >= 0)".formatted(deviation));
    }
    return draw(
        Distribution.NORMAL,
        checkFloating(type),
        Double.doubleToRawLongBits(mean),
        Double.doubleToRawLongBits(deviation),
        shape);
  }

  /**
   * {@return integers, evenly distributed, in order C} Where their number is no power of two, some
   * are likelier than others by at most that number, divided by 2<sup>64</sup>.
   *
   * @param type an integer type; UINT64 up to 2<sup>63</sup>-1
   * @param low the least integer
   * @param high the end, which is not among them
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for another type, one that does not hold all of them, or if
   *     there is none
   */
  public A integers(ElementType type, long low, long high, long... shape) {
    Objects.requireNonNull(shape, "shape");
    if (!Objects.requireNonNull(type, "type").isInteger()) {
      throw new IllegalArgumentException("type: %s (expected: an integer type)".formatted(type));
    }
    if (low >= high) {
      throw new IllegalArgumentException(
          "high: %d (expected: > %d, the least integer)".formatted(high, low));
    }
    Scalar _ = Scalar.of(type, low);
    Scalar _ = Scalar.of(type, high - 1);
    return draw(Distribution.INTEGERS, type, low, high - low, shape);
  }

  private static ElementType checkFloating(ElementType type) {
    if (Objects.requireNonNull(type, "type") != ElementType.FLOAT32
        && type != ElementType.FLOAT64) {
      throw new IllegalArgumentException(
          "type: %s (expected: FLOAT32 or FLOAT64; convert them with asType)".formatted(type));
    }
    return type;
  }

  private A draw(
      Distribution distribution, ElementType type, long low, long extent, long... shape) {
    A made = module.empty(type, shape);
    try {
      BaseArray<?> target = (BaseArray<?>) made;
      long count = target.layout().size();
      if (count > 0) {
        long blocks = (count - 1) / distribution.perBlock(type) + 1;
        long first = nextBlock.getAndAdd(blocks);
        draw(target, distribution, new DrawArgument(count, seed, first, 0, low, extent), blocks);
      }
      return made;
    } catch (RuntimeException | Error e) {
      made.close();
      throw e;
    }
  }

  private void draw(
      BaseArray<?> target, Distribution distribution, DrawArgument draw, long blocks) {
    switch (target) {
      case CudaArray device -> {
        KernelNames.Place kernel = KernelNames.random(distribution, device.type());
        try (@Nullable Scope _ = module.scope()) {
          Launches.draw(device, kernel, draw, blocks, device.current());
        }
      }
      case HostArray host ->
          new RandomTwin(distribution, host.type()).run(draw, Cells.of(host.segment()));
    }
  }

  @Override
  public String toString() {
    return "ArrayRandom with seed %d, at block %s"
        .formatted(seed, Long.toUnsignedString(nextBlock.get()));
  }
}
