package io.cuvette.array;

import static io.cuvette.array.TypeRule.ANY;
import static io.cuvette.array.TypeRule.BITS;
import static io.cuvette.array.TypeRule.FRACTIONS;
import static io.cuvette.array.TypeRule.IN_ORDER;
import static io.cuvette.array.TypeRule.NO_BOOLEAN;
import static io.cuvette.array.TypeRule.NUMBERS;
import static io.cuvette.array.TypeRule.REAL_FUNCTION;

import java.util.Objects;

/**
 * A function of two elements, applied to the elements of two arrays that are broadcast to one
 * shape. Both are converted to their common type first ({@link ElementType#commonWith}). Sums and
 * products of integers wrap around; half and bfloat16 are computed in float and rounded. {@link
 * #POWER}, {@link #ATAN2} and {@link #HYPOT} of real numbers differ from the exact result by at
 * most 4 units in the last place; all else is the same on each device, bit for bit.
 */
public enum BinaryOperation {
  /** The sum; of BOOLEAN whether one is true. */
  ADD("add", ANY),
  /** The difference; not for BOOLEAN. */
  SUBTRACT("subtract", NO_BOOLEAN),
  /** The product; of BOOLEAN whether both are true. */
  MULTIPLY("multiply", ANY),
  /** The quotient; of integers and BOOLEAN in FLOAT64. */
  DIVIDE("divide", FRACTIONS),
  /** The quotient, rounded towards minus infinity; 0 for integers divided by 0. */
  FLOOR_DIVIDE("floorDivide", NUMBERS),
  /** The remainder, of the sign of the divisor; 0 for integers divided by 0. */
  REMAINDER("remainder", NUMBERS),
  /** The first to the power of the second; for negative powers of integers, towards zero. */
  POWER("power", NUMBERS),
  /** The lesser one; NaN if one is. */
  MINIMUM("minimum", IN_ORDER),
  /** The greater one; NaN if one is. */
  MAXIMUM("maximum", IN_ORDER),
  /** Whether they are equal: BOOLEAN. */
  EQUAL("equal", ANY),
  /** Whether they are not equal: BOOLEAN. */
  NOT_EQUAL("notEqual", ANY),
  /** Whether the first is less: BOOLEAN. */
  LESS("less", IN_ORDER),
  /** Whether the first is less or equal: BOOLEAN. */
  LESS_EQUAL("lessEqual", IN_ORDER),
  /** Whether the first is greater: BOOLEAN. */
  GREATER("greater", IN_ORDER),
  /** Whether the first is greater or equal: BOOLEAN. */
  GREATER_EQUAL("greaterEqual", IN_ORDER),
  /** The bits that both have; for BOOLEAN and integers. */
  BIT_AND("bitAnd", BITS),
  /** The bits that one has; for BOOLEAN and integers. */
  BIT_OR("bitOr", BITS),
  /** The bits that only one has; for BOOLEAN and integers. */
  BIT_XOR("bitXor", BITS),
  /** The angle in radians of the point with this y and x. */
  ATAN2("atan2", REAL_FUNCTION),
  /** The square root of the sum of the squares. */
  HYPOT("hypot", REAL_FUNCTION);

  private final String kernel;
  private final TypeRule rule;

  BinaryOperation(String kernel, TypeRule rule) {
    this.kernel = kernel;
    this.rule = rule;
  }

  /** {@return the name of its kernels, before that of the type} */
  public String kernel() {
    return kernel;
  }

  /**
   * {@return whether it is a function of real numbers: floating-point numbers are made of others}
   */
  public boolean isRealFunction() {
    return rule == REAL_FUNCTION;
  }

  /** {@return whether the results are BOOLEAN} */
  public boolean isComparison() {
    return switch (this) {
      case EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL -> true;
      default -> false;
    };
  }

  /**
   * {@return the type that both are converted to}
   *
   * @param a the type of the first
   * @param b the type of the second
   * @throws IllegalArgumentException if it is not for these types
   */
  public ElementType computedType(ElementType a, ElementType b) {
    Objects.requireNonNull(a, "a");
    return rule.computed(this, a.commonWith(Objects.requireNonNull(b, "b")));
  }

  /**
   * {@return the type of the results}
   *
   * @param a the type of the first
   * @param b the type of the second
   * @throws IllegalArgumentException if it is not for these types
   */
  public ElementType resultType(ElementType a, ElementType b) {
    ElementType computed = computedType(a, b);
    return isComparison() ? ElementType.BOOLEAN : computed;
  }
}
