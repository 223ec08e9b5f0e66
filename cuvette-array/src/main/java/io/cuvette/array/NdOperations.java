package io.cuvette.array;

import org.jspecify.annotations.Nullable;

/**
 * What is computed with the elements of arrays. Operands of one call are all on one device, or all
 * on the host; results are new arrays there, which the caller closes. On a device, work is queued
 * in the stream that is current on this thread, by kernels that come with the library and by
 * cuBLAS; a simulated device and the host compute the same in Java, within the rounding that each
 * operation states.
 */
public sealed interface NdOperations permits NdArray {

  /**
   * {@return a function of each element}
   *
   * @param operation the function
   * @throws IllegalArgumentException if it is not for elements of this type
   */
  default NdArray map(UnaryOperation operation) {
    return map(operation, null);
  }

  /**
   * Computes a function of each element.
   *
   * @param operation the function
   * @param out where the results go: with the type of the results and this shape. It is this array
   *     itself, or has no byte in common with it; null for a new array
   * @return {@code out}, or the new array
   * @throws IllegalArgumentException if the function is not for elements of this type, or {@code
   *     out} does not fit
   */
  NdArray map(UnaryOperation operation, @Nullable NdArray out);

  /**
   * {@return a function of each element and the one of another array, both broadcast to one shape}
   *
   * @param operation the function
   * @param other its second operand
   * @throws IllegalArgumentException if it is not for elements of these types, or the shapes do not
   *     fit
   */
  default NdArray combine(BinaryOperation operation, NdArray other) {
    return combine(operation, other, null);
  }

  /**
   * Computes a function of each element and the one of another array, both broadcast to one shape.
   *
   * @param operation the function
   * @param other its second operand
   * @param out where the results go: with their type and shape. It is one of the operands itself,
   *     or has no byte in common with them; null for a new array
   * @return {@code out}, or the new array
   * @throws IllegalArgumentException if the function is not for elements of these types, the shapes
   *     do not fit, or {@code out} does not
   */
  NdArray combine(BinaryOperation operation, NdArray other, @Nullable NdArray out);

  /**
   * {@return a function of each element and a number} The number takes the type of the elements;
   * for BOOLEAN it is INT64.
   *
   * @param operation the function
   * @param other its second operand
   * @throws IllegalArgumentException if it is not for elements of this type, or the type does not
   *     hold the number
   */
  NdArray combine(BinaryOperation operation, long other);

  /**
   * {@return a function of each element and a number} The number takes the type of the elements if
   * they are floating or complex; else both are FLOAT64.
   *
   * @param operation the function
   * @param other its second operand
   * @throws IllegalArgumentException if it is not for elements of this type
   */
  NdArray combine(BinaryOperation operation, double other);

  /**
   * {@return for each true element that of one array, for each false one that of another, all three
   * broadcast to one shape; of their common type} This array is BOOLEAN.
   *
   * @param whenTrue the one
   * @param whenFalse the other
   * @throws IllegalArgumentException if this array is not BOOLEAN, or the shapes do not fit
   */
  NdArray where(NdArray whenTrue, NdArray whenFalse);

  /**
   * {@return each element, but not below nor above a bound; NaN stays} The upper bound wins where
   * they are in the wrong order.
   *
   * @param low the lower bound, which the type must hold
   * @param high the upper bound, which the type must hold
   * @throws IllegalArgumentException for complex numbers, or if the type does not hold a bound
   */
  NdArray clip(double low, double high);

  /**
   * {@return what is made of the elements along some axes, which the result does not have}
   *
   * @param reduction what is made of them
   * @param axes the axes, each once, from the end if negative; none for all axes
   * @throws IllegalArgumentException if it is not for elements of this type, an axis is named
   *     twice, or there are no elements and it needs one
   * @throws IndexOutOfBoundsException for an axis that there is not
   */
  NdArray reduce(Reduction reduction, int... axes);

  /**
   * {@return the product with another array, as CuPy's dot} Of two vectors a number without axes;
   * of matrices their product; else the sums over the last axis of this array and the last but one
   * of the other (or its only one), for all other axes of both.
   *
   * @param other the right operand
   * @throws IllegalArgumentException if one has no axes, the axes do not fit, or the common type is
   *     none of FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64 and COMPLEX128
   */
  NdArray dot(NdArray other);

  /**
   * {@return the product of the matrices in the last two axes, for all others, which are broadcast}
   * A vector counts as a matrix of one row on the left and of one column on the right, which the
   * result does not have. Sums are made in float for half and bfloat16; they differ from the exact
   * ones by the rounding of each of their products and sums.
   *
   * @param other the right operand
   * @throws IllegalArgumentException if one has no axes, the axes do not fit, or the common type is
   *     none of FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64 and COMPLEX128
   */
  default NdArray matmul(NdArray other) {
    return matmul(other, null);
  }

  /**
   * Multiplies matrices as {@link #matmul(NdArray)} does.
   *
   * @param other the right operand
   * @param out where the product goes: with its type and shape, by rows or by columns; it has no
   *     byte in common with the operands. Null for a new array
   * @return {@code out}, or the new array
   * @throws IllegalArgumentException if the operands or {@code out} do not fit
   */
  NdArray matmul(NdArray other, @Nullable NdArray out);

  /**
   * {@return the sums of the elements and those of another array}
   *
   * @param other the second operand of {@link BinaryOperation#ADD}
   */
  default NdArray add(NdArray other) {
    return combine(BinaryOperation.ADD, other);
  }

  /**
   * {@return the sums of the elements and an integer}
   *
   * @param other the second operand of {@link BinaryOperation#ADD}
   */
  default NdArray add(long other) {
    return combine(BinaryOperation.ADD, other);
  }

  /**
   * {@return the sums of the elements and a number}
   *
   * @param other the second operand of {@link BinaryOperation#ADD}
   */
  default NdArray add(double other) {
    return combine(BinaryOperation.ADD, other);
  }

  /**
   * {@return the differences of the elements and those of another array}
   *
   * @param other the second operand of {@link BinaryOperation#SUBTRACT}
   */
  default NdArray subtract(NdArray other) {
    return combine(BinaryOperation.SUBTRACT, other);
  }

  /**
   * {@return the differences of the elements and an integer}
   *
   * @param other the second operand of {@link BinaryOperation#SUBTRACT}
   */
  default NdArray subtract(long other) {
    return combine(BinaryOperation.SUBTRACT, other);
  }

  /**
   * {@return the differences of the elements and a number}
   *
   * @param other the second operand of {@link BinaryOperation#SUBTRACT}
   */
  default NdArray subtract(double other) {
    return combine(BinaryOperation.SUBTRACT, other);
  }

  /**
   * {@return the products of the elements and those of another array}
   *
   * @param other the second operand of {@link BinaryOperation#MULTIPLY}
   */
  default NdArray multiply(NdArray other) {
    return combine(BinaryOperation.MULTIPLY, other);
  }

  /**
   * {@return the products of the elements and an integer}
   *
   * @param other the second operand of {@link BinaryOperation#MULTIPLY}
   */
  default NdArray multiply(long other) {
    return combine(BinaryOperation.MULTIPLY, other);
  }

  /**
   * {@return the products of the elements and a number}
   *
   * @param other the second operand of {@link BinaryOperation#MULTIPLY}
   */
  default NdArray multiply(double other) {
    return combine(BinaryOperation.MULTIPLY, other);
  }

  /**
   * {@return the quotients of the elements and those of another array}
   *
   * @param other the second operand of {@link BinaryOperation#DIVIDE}
   */
  default NdArray divide(NdArray other) {
    return combine(BinaryOperation.DIVIDE, other);
  }

  /**
   * {@return the quotients of the elements and a number}
   *
   * @param other the second operand of {@link BinaryOperation#DIVIDE}
   */
  default NdArray divide(double other) {
    return combine(BinaryOperation.DIVIDE, other);
  }

  /**
   * {@return the sums of the elements along some axes}
   *
   * @param axes the axes of {@link #reduce}; none for all
   */
  default NdArray sum(int... axes) {
    return reduce(Reduction.SUM, axes);
  }

  /**
   * {@return the means of the elements along some axes}
   *
   * @param axes the axes of {@link #reduce}; none for all
   */
  default NdArray mean(int... axes) {
    return reduce(Reduction.MEAN, axes);
  }

  /**
   * {@return the least elements along some axes}
   *
   * @param axes the axes of {@link #reduce}; none for all
   */
  default NdArray min(int... axes) {
    return reduce(Reduction.MIN, axes);
  }

  /**
   * {@return the greatest elements along some axes}
   *
   * @param axes the axes of {@link #reduce}; none for all
   */
  default NdArray max(int... axes) {
    return reduce(Reduction.MAX, axes);
  }
}
