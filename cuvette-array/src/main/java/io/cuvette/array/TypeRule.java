package io.cuvette.array;

import java.util.Objects;
import java.util.function.Predicate;

/** For which types an operation is, and with which it computes. Stateless. */
enum TypeRule {
  ANY("any type", _ -> true),
  NO_BOOLEAN("any type but BOOLEAN", type -> type != ElementType.BOOLEAN),
  BITS("BOOLEAN or an integer type", type -> type == ElementType.BOOLEAN || type.isInteger()),
  IN_ORDER("no complex type", type -> !type.isComplex()),
  NUMBERS_IN_ORDER(
      "an integer or real floating-point type", type -> type.isInteger() || type.isFloating()),
  /** BOOLEAN counts as INT8. */
  NUMBERS("no complex type", type -> !type.isComplex()),
  /** Numbers that can be divided: FLOAT64 instead of integers. */
  FRACTIONS("any type", _ -> true),
  /** Floating-point numbers that hold the integers. */
  REAL_FUNCTION("no complex type", type -> !type.isComplex()),
  COMPLEX_ONLY("a complex type", ElementType::isComplex);

  private final String expected;

  @SuppressWarnings("ImmutableEnumChecker") // the functions have no state
  private final Predicate<ElementType> allows;

  TypeRule(String expected, Predicate<ElementType> allows) {
    this.expected = expected;
    this.allows = allows;
  }

  ElementType computed(Enum<?> operation, ElementType type) {
    if (!allows.test(Objects.requireNonNull(type, "type"))) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %s)".formatted(operation, type, expected));
    }
    return switch (this) {
      case NUMBERS -> type == ElementType.BOOLEAN ? ElementType.INT8 : type;
      case FRACTIONS -> type.isFloating() || type.isComplex() ? type : ElementType.FLOAT64;
      case REAL_FUNCTION -> type.isFloating() ? type : type.commonWith(ElementType.FLOAT16);
      default -> type;
    };
  }
}
