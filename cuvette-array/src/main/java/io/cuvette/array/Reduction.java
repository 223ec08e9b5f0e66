package io.cuvette.array;

import static io.cuvette.array.TypeRule.ANY;
import static io.cuvette.array.TypeRule.IN_ORDER;

/**
 * What is made of all elements along some axes. The result for one device and one shape is always
 * the same, bit for bit: the elements are joined in a fixed order. Between devices, sums, products
 * and means of floating-point numbers differ by rounding: at most <i>n</i> units in the last place
 * of the sum of the absolute values of <i>n</i> elements.
 */
public enum Reduction {
  /** The sum: of BOOLEAN and signed integers in INT64, of unsigned ones in UINT64; 0 of none. */
  SUM("sum", ANY),
  /** The product, with the types of {@link #SUM}; 1 of none. */
  PROD("prod", ANY),
  /** The sum divided by the number: of BOOLEAN and integers in FLOAT64; NaN of none. */
  MEAN("mean", ANY),
  /** The least; NaN if one is. Not of none. */
  MIN("min", IN_ORDER),
  /** The greatest; NaN if one is. Not of none. */
  MAX("max", IN_ORDER),
  /** The index of the first least one, or of the first NaN: INT64. Not of none. */
  ARGMIN("argmin", IN_ORDER),
  /** The index of the first greatest one, or of the first NaN: INT64. Not of none. */
  ARGMAX("argmax", IN_ORDER),
  /** Whether one is true or not 0: BOOLEAN; false of none. */
  ANY_TRUE("any", ANY),
  /** Whether all are true or not 0: BOOLEAN; true of none. */
  ALL_TRUE("all", ANY);

  private final String kernel;
  private final TypeRule rule;

  Reduction(String kernel, TypeRule rule) {
    this.kernel = kernel;
    this.rule = rule;
  }

  /** {@return the name of its kernels, before that of the type} */
  public String kernel() {
    return kernel;
  }

  /** {@return whether the result is one of the elements, or where it is} */
  public boolean isOfOneElement() {
    return rule == IN_ORDER;
  }

  /** {@return whether the result is the index of an element} */
  public boolean isIndex() {
    return this == ARGMIN || this == ARGMAX;
  }

  /**
   * {@return the type of the results}
   *
   * @param type the type of the elements
   * @throws IllegalArgumentException if it is not for elements of this type
   */
  public ElementType resultType(ElementType type) {
    ElementType computed = rule.computed(this, type);
    boolean isExact = computed == ElementType.BOOLEAN || computed.isInteger();
    return switch (this) {
      case SUM, PROD ->
          isExact ? (computed.isUnsigned() ? ElementType.UINT64 : ElementType.INT64) : computed;
      case MEAN -> isExact ? ElementType.FLOAT64 : computed;
      case MIN, MAX -> computed;
      case ARGMIN, ARGMAX -> ElementType.INT64;
      case ANY_TRUE, ALL_TRUE -> ElementType.BOOLEAN;
    };
  }
}
