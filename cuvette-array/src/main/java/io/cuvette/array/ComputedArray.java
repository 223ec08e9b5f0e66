package io.cuvette.array;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Computes with elements: what arrays on devices and on the host have in common.
 *
 * @param <A> the kind of array
 */
abstract sealed class ComputedArray<A extends NdArray> permits BaseArray {

  /** Itself with type and layout. */
  abstract BaseArray<A> base();

  /**
   * Implements {@link NdOperations#map(UnaryOperation, NdArray)}.
   *
   * @param operation the function
   * @param out where the results go; null for a new array
   * @return the results
   */
  public final A map(UnaryOperation operation, @Nullable NdArray out) {
    Objects.requireNonNull(operation, "operation");
    return Arithmetic.map(base(), operation, out);
  }

  /**
   * Implements {@link NdOperations#combine(BinaryOperation, NdArray, NdArray)}.
   *
   * @param operation the function
   * @param other its second operand
   * @param out where the results go; null for a new array
   * @return the results
   */
  public final A combine(BinaryOperation operation, NdArray other, @Nullable NdArray out) {
    Objects.requireNonNull(operation, "operation");
    Objects.requireNonNull(other, "other");
    return Arithmetic.combine(base(), operation, other, out);
  }

  /**
   * Implements {@link NdOperations#map(UnaryOperation)}.
   *
   * @param operation the function
   * @return the results
   */
  public final A map(UnaryOperation operation) {
    return map(operation, null);
  }

  /**
   * Implements {@link NdOperations#combine(BinaryOperation, NdArray)}.
   *
   * @param operation the function
   * @param other its second operand
   * @return the results
   */
  public final A combine(BinaryOperation operation, NdArray other) {
    return combine(operation, other, null);
  }

  /**
   * Implements {@link NdOperations#combine(BinaryOperation, long)}.
   *
   * @param operation the function
   * @param other its second operand
   * @return the results
   */
  public final A combine(BinaryOperation operation, long other) {
    Objects.requireNonNull(operation, "operation");
    ElementType own = base().type();
    ElementType type =
        operation.computedType(own, own == ElementType.BOOLEAN ? ElementType.INT64 : own);
    return Arithmetic.combine(base(), operation, Scalar.of(type, other));
  }

  /**
   * Implements {@link NdOperations#combine(BinaryOperation, double)}.
   *
   * @param operation the function
   * @param other its second operand
   * @return the results
   */
  public final A combine(BinaryOperation operation, double other) {
    Objects.requireNonNull(operation, "operation");
    ElementType own = base().type();
    boolean isExact = own == ElementType.BOOLEAN || own.isInteger();
    ElementType type = operation.computedType(own, isExact ? ElementType.FLOAT64 : own);
    return Arithmetic.combine(base(), operation, Scalar.of(type, other));
  }

  /**
   * Implements {@link NdOperations#where}.
   *
   * @param whenTrue what true elements choose
   * @param whenFalse what false elements choose
   * @return the chosen elements
   */
  public final A where(NdArray whenTrue, NdArray whenFalse) {
    Objects.requireNonNull(whenTrue, "whenTrue");
    Objects.requireNonNull(whenFalse, "whenFalse");
    return Arithmetic.where(base(), whenTrue, whenFalse);
  }

  /**
   * Implements {@link NdOperations#clip}.
   *
   * @param low the lower bound
   * @param high the upper bound
   * @return the limited elements
   */
  public final A clip(double low, double high) {
    return Arithmetic.clip(base(), low, high);
  }

  /**
   * Implements {@link NdOperations#reduce}.
   *
   * @param reduction what is made of the elements
   * @param axes along which axes; none for all
   * @return the results
   */
  public final A reduce(Reduction reduction, int... axes) {
    Objects.requireNonNull(reduction, "reduction");
    Objects.requireNonNull(axes, "axes");
    return Reductions.reduce(base(), reduction, axes);
  }

  /**
   * Implements {@link NdOperations#dot}.
   *
   * @param other the right operand
   * @return the product
   */
  public final A dot(NdArray other) {
    return Products.dot(base(), Objects.requireNonNull(other, "other"));
  }

  /**
   * Implements {@link NdOperations#matmul(NdArray)}.
   *
   * @param other the right operand
   * @return the product
   */
  public final A matmul(NdArray other) {
    return matmul(other, null);
  }

  /**
   * Implements {@link NdOperations#matmul(NdArray, NdArray)}.
   *
   * @param other the right operand
   * @param out where the product goes; null for a new array
   * @return the product
   */
  public final A matmul(NdArray other, @Nullable NdArray out) {
    return Products.matmul(base(), Objects.requireNonNull(other, "other"), out);
  }
}
