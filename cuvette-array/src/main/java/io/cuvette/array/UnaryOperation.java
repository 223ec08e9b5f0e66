package io.cuvette.array;

import static io.cuvette.array.TypeRule.ANY;
import static io.cuvette.array.TypeRule.BITS;
import static io.cuvette.array.TypeRule.COMPLEX_ONLY;
import static io.cuvette.array.TypeRule.NO_BOOLEAN;
import static io.cuvette.array.TypeRule.NUMBERS_IN_ORDER;
import static io.cuvette.array.TypeRule.REAL_FUNCTION;

/**
 * A function of each element of an array. The functions of real numbers, from {@link #SQRT} on,
 * make floating-point numbers of others, as NumPy does: FLOAT16 of BOOLEAN and integers of 1 byte,
 * FLOAT32 of 2, FLOAT64 of more; half and bfloat16 are computed in float. They differ from the
 * exact result by at most 4 units in the last place, and between devices by as much.
 */
public enum UnaryOperation {
  /** The number with the other sign; not for BOOLEAN. */
  NEGATE("negate", NO_BOOLEAN),
  /** The absolute value; of a complex number a real one. */
  ABS("abs", ANY),
  /** The number times itself; not for BOOLEAN. */
  SQUARE("square", NO_BOOLEAN),
  /** 1, 0 or -1; NaN of NaN. Not for BOOLEAN or complex numbers. */
  SIGN("sign", NUMBERS_IN_ORDER),
  /** Each bit inverted; of BOOLEAN the other value. For BOOLEAN and integers. */
  BIT_NOT("bitNot", BITS),
  /** The conjugate of a complex number. */
  CONJUGATE("conjugate", COMPLEX_ONLY),
  /** The real part of a complex number. */
  REAL("real", COMPLEX_ONLY),
  /** The imaginary part of a complex number. */
  IMAG("imag", COMPLEX_ONLY),
  /** The square root, correctly rounded. */
  SQRT("sqrt", REAL_FUNCTION),
  /** The cube root. */
  CBRT("cbrt", REAL_FUNCTION),
  /** e to the power of the number. */
  EXP("exp", REAL_FUNCTION),
  /** 2 to the power of the number. */
  EXP2("exp2", REAL_FUNCTION),
  /** e to the power of the number, less 1. */
  EXPM1("expm1", REAL_FUNCTION),
  /** The natural logarithm. */
  LOG("log", REAL_FUNCTION),
  /** The logarithm with base 2. */
  LOG2("log2", REAL_FUNCTION),
  /** The logarithm with base 10. */
  LOG10("log10", REAL_FUNCTION),
  /** The natural logarithm of the number plus 1. */
  LOG1P("log1p", REAL_FUNCTION),
  /** The sine of an angle in radians. */
  SIN("sin", REAL_FUNCTION),
  /** The cosine of an angle in radians. */
  COS("cos", REAL_FUNCTION),
  /** The tangent of an angle in radians. */
  TAN("tan", REAL_FUNCTION),
  /** The angle in radians with this sine. */
  ASIN("asin", REAL_FUNCTION),
  /** The angle in radians with this cosine. */
  ACOS("acos", REAL_FUNCTION),
  /** The angle in radians with this tangent. */
  ATAN("atan", REAL_FUNCTION),
  /** The hyperbolic sine. */
  SINH("sinh", REAL_FUNCTION),
  /** The hyperbolic cosine. */
  COSH("cosh", REAL_FUNCTION),
  /** The hyperbolic tangent. */
  TANH("tanh", REAL_FUNCTION),
  /** The next integer below, exactly. */
  FLOOR("floor", REAL_FUNCTION),
  /** The next integer above, exactly. */
  CEIL("ceil", REAL_FUNCTION),
  /** The nearest integer, ties to even, exactly. */
  RINT("rint", REAL_FUNCTION),
  /** The integer part, exactly. */
  TRUNC("trunc", REAL_FUNCTION),
  /** Whether it is not a number: BOOLEAN. */
  IS_NAN("isNan", REAL_FUNCTION),
  /** Whether it is an infinity: BOOLEAN. */
  IS_INFINITE("isInfinite", REAL_FUNCTION),
  /** Whether it is neither: BOOLEAN. */
  IS_FINITE("isFinite", REAL_FUNCTION);

  private final String kernel;
  private final TypeRule rule;

  UnaryOperation(String kernel, TypeRule rule) {
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

  /**
   * {@return the type that it computes with, of elements of a type}
   *
   * @param type the type of the elements
   * @throws IllegalArgumentException if it is not for elements of this type
   */
  public ElementType computedType(ElementType type) {
    return rule.computed(this, type);
  }

  /**
   * {@return the type of the results for elements of a type}
   *
   * @param type the type of the elements
   * @throws IllegalArgumentException if it is not for elements of this type
   */
  public ElementType resultType(ElementType type) {
    ElementType computed = computedType(type);
    return switch (this) {
      case ABS, REAL, IMAG -> computed.realType();
      case IS_NAN, IS_INFINITE, IS_FINITE -> ElementType.BOOLEAN;
      default -> computed;
    };
  }
}
