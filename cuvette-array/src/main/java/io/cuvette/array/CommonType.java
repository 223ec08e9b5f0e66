package io.cuvette.array;

import static io.cuvette.array.ElementType.BFLOAT16;
import static io.cuvette.array.ElementType.COMPLEX128;
import static io.cuvette.array.ElementType.COMPLEX64;
import static io.cuvette.array.ElementType.FLOAT16;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT16;
import static io.cuvette.array.ElementType.INT32;
import static io.cuvette.array.ElementType.INT64;

/** Finds the type for what comes of two, by NumPy's rules. Stateless. */
final class CommonType {
  private CommonType() {}

  static ElementType of(ElementType a, ElementType b) {
    if (a == b) {
      return a;
    }
    if (a.kind().compareTo(b.kind()) > 0) {
      return of(b, a); // the kinds ascend from here on
    }
    return switch (b.kind()) {
      case BOOL -> b;
      case SIGNED -> a.kind() == ElementKind.BOOL ? b : larger(a, b);
      case UNSIGNED -> a.kind() == ElementKind.SIGNED ? ofSigns(a, b) : larger(a, b);
      case FLOATING -> floating(a, b);
      case COMPLEX -> complex(a, b);
    };
  }

  private static ElementType larger(ElementType a, ElementType b) {
    return a.bytes() > b.bytes() ? a : b;
  }

  private static ElementType ofSigns(ElementType signed, ElementType unsigned) {
    if (signed.bytes() > unsigned.bytes()) {
      return signed;
    }
    return switch (unsigned.bytes()) {
      case 1 -> INT16;
      case 2 -> INT32;
      case 4 -> INT64;
      default -> FLOAT64;
    };
  }

  /** The floating type that holds an element: exactly, but for integers of 8 bytes. */
  private static ElementType holding(ElementType type) {
    return switch (type.kind()) {
      case FLOATING -> type;
      case BOOL -> FLOAT16;
      default -> type.bytes() == 1 ? FLOAT16 : type.bytes() == 2 ? FLOAT32 : FLOAT64;
    };
  }

  private static ElementType floating(ElementType a, ElementType b) {
    if (a.isFloating()) {
      return a.bytes() == b.bytes() ? FLOAT32 : larger(a, b); // two of 2 bytes
    }
    ElementType held = holding(a);
    return b == BFLOAT16 && held == FLOAT16 ? BFLOAT16 : larger(held, b);
  }

  private static ElementType complex(ElementType a, ElementType b) {
    return larger(holding(a.realType()), b.realType()) == FLOAT64 ? COMPLEX128 : COMPLEX64;
  }
}
