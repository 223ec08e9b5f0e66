package io.cuvette.array;

import io.cuvette.Cuda;
import io.cuvette.Scope;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Makes arrays in one place: {@link CudaArrays} on a device, {@link HostArrays} in page-locked host
 * memory. A program that takes its module from its arguments ({@link #of}) runs on both. Immutable
 * and thread-safe.
 *
 * <p>All arrays that are returned are closed by the caller; those that are views own nothing, and
 * may be closed all the same.
 *
 * @param <A> the kind of array it makes
 */
public abstract sealed class ArrayModule<A extends NdArray> permits CudaArrays, HostArrays {
  private final Cuda cuda;

  ArrayModule(Cuda cuda) {
    this.cuda = Objects.requireNonNull(cuda, "cuda");
  }

  /** {@return the Cuda whose memory the arrays use} */
  public final Cuda cuda() {
    return cuda;
  }

  /** A new array with a layout that begins at 0 and has no gaps. */
  abstract A allocate(ElementType type, Layout layout);

  /** Makes the module's device and stream current until it is closed; null if they are. */
  abstract @Nullable Scope scope();

  /** An array that is here, as a view; null for one that is elsewhere. */
  abstract @Nullable A here(NdArray a);

  /**
   * {@return the module for some arrays: that of the first one on a device, else of the first, in
   * the way of CuPy's get_array_module}
   *
   * @param arrays one array or more
   * @throws IllegalArgumentException if there is none
   */
  public static ArrayModule<? extends NdArray> of(NdArray... arrays) {
    Objects.requireNonNull(arrays, "arrays");
    if (arrays.length == 0) {
      throw new IllegalArgumentException("arrays: none (expected: at least one)");
    }
    NdArray chosen = arrays[0];
    for (NdArray each : arrays) {
      Objects.requireNonNull(each, "array");
      if (each instanceof CudaArray && chosen instanceof HostArray) {
        chosen = each;
      }
    }
    return chosen.module();
  }

  /**
   * {@return an array whose elements have no particular value, in order C}
   *
   * @param type the type of the elements
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for a negative size or more bytes than a long counts
   */
  public final A empty(ElementType type, long... shape) {
    return empty(type, Order.C, shape);
  }

  /**
   * {@return an array whose elements have no particular value}
   *
   * @param type the type of the elements
   * @param order C or F
   * @param shape the size of each axis, >= 0
   * @throws IllegalArgumentException for another order, a negative size or more bytes than a long
   *     counts
   */
  public final A empty(ElementType type, Order order, long... shape) {
    return allocate(type, Layout.of(order, shape));
  }

  /**
   * {@return an array of zeros in order C}
   *
   * @param type the type of the elements
   * @param shape the size of each axis, >= 0
   */
  public final A zeros(ElementType type, long... shape) {
    return zeros(type, Order.C, shape);
  }

  /**
   * {@return an array of zeros}
   *
   * @param type the type of the elements
   * @param order C or F
   * @param shape the size of each axis, >= 0
   */
  public final A zeros(ElementType type, Order order, long... shape) {
    return filled(empty(type, order, shape), Scalar.of(type, 0L));
  }

  /**
   * {@return an array of ones in order C}
   *
   * @param type the type of the elements
   * @param shape the size of each axis, >= 0
   */
  public final A ones(ElementType type, long... shape) {
    return full(type, 1L, shape);
  }

  /**
   * {@return an array of one value in order C}
   *
   * @param type the type of the elements
   * @param value the value, see {@link NdArray#fill(long)}
   * @param shape the size of each axis, >= 0
   */
  public final A full(ElementType type, long value, long... shape) {
    Scalar scalar = Scalar.of(type, value);
    return filled(empty(type, shape), scalar);
  }

  /**
   * {@return an array of one value in order C}
   *
   * @param type the type of the elements
   * @param value the value, see {@link NdArray#fill(double)}
   * @param shape the size of each axis, >= 0
   */
  public final A full(ElementType type, double value, long... shape) {
    Scalar scalar = Scalar.of(type, value);
    return filled(empty(type, shape), scalar);
  }

  /**
   * {@return an array of one value in order C}
   *
   * @param type the type of the elements
   * @param value the value, see {@link NdArray#fill(Complex)}
   * @param shape the size of each axis, >= 0
   */
  public final A full(ElementType type, Complex value, long... shape) {
    Scalar scalar = Scalar.of(type, value);
    return filled(empty(type, shape), scalar);
  }

  /**
   * {@return the integers from 0 on}
   *
   * @param type the type of the elements, not BOOLEAN
   * @param stop the first number that is not in it; none are for 0 and below
   * @throws IllegalArgumentException if an integer type does not hold all of them
   */
  public final A arange(ElementType type, long stop) {
    return arange(type, 0, stop, 1);
  }

  /**
   * {@return the integers from a start, step by step}
   *
   * @param type the type of the elements, not BOOLEAN
   * @param start the first number
   * @param stop the end, which is not in it
   * @param step the distance, not 0
   * @throws IllegalArgumentException if an integer type does not hold all of them
   */
  public final A arange(ElementType type, long start, long stop, long step) {
    return sequence(type, Sequence.of(type, start, stop, step));
  }

  /**
   * {@return the numbers start + i · step before a stop}
   *
   * @param type the type of the elements, floating or complex
   * @param start the first number, finite
   * @param stop the end, which is not in it, finite
   * @param step the distance, finite and not 0
   * @throws IllegalArgumentException for other numbers or another type
   */
  public final A arange(ElementType type, double start, double stop, double step) {
    return sequence(type, Sequence.of(type, start, stop, step));
  }

  /**
   * {@return numbers at equal distances, from a first to a last one}
   *
   * @param type the type of the elements, floating or complex
   * @param first the first number, finite
   * @param last the last number, finite
   * @param count how many there are, >= 0; the first alone for 1
   * @throws IllegalArgumentException for other numbers or another type
   */
  public final A linspace(ElementType type, double first, double last, long count) {
    return sequence(type, Sequence.between(type, first, last, count));
  }

  /**
   * {@return an array with type and shape of another, in order K}
   *
   * @param a the other array, on a device or not
   */
  public final A emptyLike(NdArray a) {
    return emptyLike(checked(a), a.type(), Order.K);
  }

  /**
   * {@return an array with the shape of another}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order, which may follow that of the other array
   */
  public final A emptyLike(NdArray a, ElementType type, Order order) {
    return emptyLike(checked(a), type, order, a.shape());
  }

  /**
   * {@return an array in the order of another}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order, which may follow that of the other array; if the number of axes
   *     differs, A and K mean C
   * @param shape the size of each axis, >= 0
   */
  public final A emptyLike(NdArray a, ElementType type, Order order, long... shape) {
    return allocate(type, checked(a).layout().like(order, shape));
  }

  /**
   * {@return zeros with type and shape of another array, in order K}
   *
   * @param a the other array, on a device or not
   */
  public final A zerosLike(NdArray a) {
    return zerosLike(checked(a), a.type(), Order.K);
  }

  /**
   * {@return zeros with the shape of another array}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order, which may follow that of the other array
   */
  public final A zerosLike(NdArray a, ElementType type, Order order) {
    return zerosLike(checked(a), type, order, a.shape());
  }

  /**
   * {@return zeros in the order of another array}
   *
   * @param a the other array, on a device or not
   * @param type the type of the elements
   * @param order the order, see {@link #emptyLike(NdArray, ElementType, Order, long...)}
   * @param shape the size of each axis, >= 0
   */
  public final A zerosLike(NdArray a, ElementType type, Order order, long... shape) {
    return filled(emptyLike(a, type, order, shape), Scalar.of(type, 0L));
  }

  /**
   * {@return ones with type and shape of another array, in order K}
   *
   * @param a the other array, on a device or not
   */
  public final A onesLike(NdArray a) {
    return fullLike(a, 1L);
  }

  /**
   * {@return one value with type and shape of another array, in order K}
   *
   * @param a the other array, on a device or not
   * @param value the value, see {@link NdArray#fill(long)}
   */
  public final A fullLike(NdArray a, long value) {
    Scalar scalar = Scalar.of(checked(a).type(), value);
    return filled(emptyLike(a), scalar);
  }

  /**
   * {@return one value with type and shape of another array, in order K}
   *
   * @param a the other array, on a device or not
   * @param value the value, see {@link NdArray#fill(double)}
   */
  public final A fullLike(NdArray a, double value) {
    Scalar scalar = Scalar.of(checked(a).type(), value);
    return filled(emptyLike(a), scalar);
  }

  /**
   * {@return a copy of an array of Java or of another array, here} Waits if it comes from the host.
   *
   * @param values an array of a primitive type of Java, of any depth but rectangular, or an {@link
   *     NdArray}
   * @throws IllegalArgumentException for anything else
   */
  public final A array(Object values) {
    if (Objects.requireNonNull(values, "values") instanceof NdArray a) {
      return copy(a, a.type(), Order.K);
    }
    return array(JavaArrays.type(values), values);
  }

  /**
   * {@return a copy of an array of Java or of another array, here, with elements of a type} Waits
   * if it comes from the host.
   *
   * @param type the type of the elements
   * @param values an array of a primitive type of Java, of any depth but rectangular, or an {@link
   *     NdArray}
   * @throws IllegalArgumentException for anything else
   */
  public final A array(ElementType type, Object values) {
    Objects.requireNonNull(type, "type");
    if (Objects.requireNonNull(values, "values") instanceof NdArray a) {
      return copy(a, type, Order.K);
    }
    Layout layout = Layout.of(JavaArrays.shape(values));
    return made(allocate(type, layout), array -> JavaArrays.read(values, array));
  }

  /**
   * {@return the array itself as a view if it is here, else a copy as {@link #array(Object)} makes
   * it}
   *
   * @param values an array of a primitive type of Java, of any depth but rectangular, or an {@link
   *     NdArray}
   * @throws IllegalArgumentException for anything else
   */
  public final A asarray(Object values) {
    A here = Objects.requireNonNull(values, "values") instanceof NdArray a ? here(a) : null;
    return here == null ? array(values) : here;
  }

  /**
   * {@return the array itself as a view if it is here and contiguous in an order, else a copy}
   *
   * @param a the array
   * @param order C or F
   */
  public final A contiguous(NdArray a, Order order) {
    A here = checked(a).isContiguous(order) ? here(a) : null;
    return here == null ? copy(a, a.type(), order) : here;
  }

  private static NdArray checked(NdArray a) {
    return Objects.requireNonNull(a, "a");
  }

  /** A copy of an array of any place, here. */
  final A copy(NdArray a, ElementType type, Order order) {
    return made(allocate(type, a.layout().like(order)), array -> array.copyFrom(a));
  }

  private A filled(A array, Scalar value) {
    return made(array, each -> ((BaseArray<?>) each).fillWith(value));
  }

  private A sequence(ElementType type, Sequence sequence) {
    return made(allocate(type, Layout.of(sequence.count())), sequence::write);
  }

  /** The array once a step has filled it; frees it if that fails. */
  private A made(A array, Consumer<NdArray> step) {
    try (Scope _ = scope()) {
      step.accept(array);
      return array;
    } catch (RuntimeException | Error e) {
      try {
        array.close();
      } catch (RuntimeException | Error second) {
        e.addSuppressed(second);
      }
      throw e;
    }
  }
}
