package io.cuvette.array;

import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Arrays that results go to: those of the caller, and new ones. Stateless. */
final class Outs {
  private Outs() {}

  /**
   * Checks the array of the caller.
   *
   * @param mayBeOperand whether it may be one of the operands itself
   * @return the array; null if there is none
   */
  @SuppressWarnings("unchecked") // an array where an A is, is one
  static <A extends NdArray> @Nullable BaseArray<A> check(
      BaseArray<A> a,
      @Nullable NdArray out,
      ElementType type,
      long[] shape,
      List<BaseArray<?>> operands,
      boolean mayBeOperand) {
    if (out == null) {
      return null;
    }
    BaseArray<?> target = (BaseArray<?>) out;
    target.checkOpen();
    Places.checkSame(a, "out", target);
    if (target.type() != type) {
      throw new IllegalArgumentException(
          "out: elements of %s (expected: %s)".formatted(target.type(), type));
    }
    if (!Arrays.equals(target.layout().sizes(), shape)) {
      throw new IllegalArgumentException(
          "out: shape %s (expected: %s)"
              .formatted(Arrays.toString(target.layout().sizes()), Arrays.toString(shape)));
    }
    target.checkWritable();
    for (BaseArray<?> each : operands) {
      boolean isItself =
          mayBeOperand
              && each.type() == type
              && each.layout().equals(target.layout())
              && each.memoryAddress() == target.memoryAddress();
      if (!isItself && each.overlaps(target)) {
        throw new IllegalArgumentException(
            "out: %s has bytes in common with %s (expected: none)".formatted(out, each));
      }
    }
    return (BaseArray<A>) target;
  }

  /** A new contiguous array with another shape. */
  @SuppressWarnings("unchecked") // a view of an A is one
  static <A extends NdArray> A renamed(A made, Layout layout) {
    return (A) ((BaseArray<?>) made).renamed(layout);
  }

  /** Fills the array of the caller, or a new one, which is closed if that fails. */
  @SuppressWarnings("unchecked") // arrays of a module are its A
  static <A extends NdArray> A fill(
      BaseArray<A> a, @Nullable BaseArray<A> out, Supplier<A> made, Consumer<BaseArray<?>> step) {
    if (out != null) {
      step.accept(out);
      return out.self();
    }
    A target = made.get();
    try {
      step.accept((BaseArray<?>) target);
      return target;
    } catch (RuntimeException | Error e) {
      try {
        target.close();
      } catch (RuntimeException | Error second) {
        e.addSuppressed(second);
      }
      throw e;
    }
  }
}
