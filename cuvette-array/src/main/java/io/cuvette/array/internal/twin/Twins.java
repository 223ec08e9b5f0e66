package io.cuvette.array.internal.twin;

import io.cuvette.array.BinaryOperation;
import io.cuvette.array.ElementType;
import io.cuvette.array.UnaryOperation;
import io.cuvette.array.internal.twin.ElementTwin.LaneFunction;
import java.util.List;

/** The twins of the kernels for elements. Stateless. */
public final class Twins {
  private Twins() {}

  /** An operation on elements of the type that it computes with. */
  public static ElementTwin of(UnaryOperation operation, ElementType type) {
    LaneFunction function =
        type.isComplex()
            ? ComplexFunctions.of(operation)
            : isExact(type) && !operation.isRealFunction()
                ? ExactFunctions.of(operation)
                : RealFunctions.of(operation);
    return new ElementTwin(operation.resultType(type), List.of(type), function);
  }

  /** An operation on elements of the type that both have. */
  public static ElementTwin of(BinaryOperation operation, ElementType type) {
    LaneFunction function =
        type.isComplex()
            ? ComplexFunctions.of(operation)
            : isExact(type) ? ExactFunctions.of(operation) : RealFunctions.of(operation);
    return new ElementTwin(operation.resultType(type, type), List.of(type, type), function);
  }

  /** A conversion, or a copy. */
  public static ElementTwin conversion(ElementType from, ElementType to) {
    return from == to
        ? new ElementTwin(bits(to), List.of(bits(to)), Twins::copied)
        : new ElementTwin(to, List.of(from), Twins::copied);
  }

  /** A type of this size whose copies keep each bit, also of what is no number. */
  private static ElementType bits(ElementType type) {
    return switch (type.bytes()) {
      case 1 -> ElementType.UINT8;
      case 2 -> ElementType.UINT16;
      case 4 -> ElementType.UINT32;
      case 8 -> ElementType.UINT64;
      default -> type;
    };
  }

  /** The choice between two by a third. */
  public static ElementTwin where(ElementType type) {
    return new ElementTwin(
        type,
        List.of(ElementType.BOOLEAN, type, type),
        (out, in, n) -> {
          for (int i = 0; i < n; i++) {
            copy(in[in[0].bits[i] != 0 ? 1 : 2], i, out);
          }
        });
  }

  /** The nearest number between two bounds. */
  public static ElementTwin clip(ElementType type) {
    LaneFunction greater = of(BinaryOperation.MAXIMUM, type).function();
    LaneFunction lesser = of(BinaryOperation.MINIMUM, type).function();
    return new ElementTwin(
        type,
        List.of(type, type, type),
        (out, in, n) -> {
          greater.apply(out, new Lane[] {in[0], in[1]}, n);
          lesser.apply(out, new Lane[] {out, in[2]}, n);
        });
  }

  private static boolean isExact(ElementType type) {
    return type == ElementType.BOOLEAN || type.isInteger();
  }

  private static void copied(Lane out, Lane[] in, int n) {
    Codec.convert(in[0], n, out);
  }

  private static void copy(Lane from, int i, Lane to) {
    if (to.isExact()) {
      to.bits[i] = from.bits[i];
    } else {
      to.re[i] = from.re[i];
      if (to.isComplex()) {
        to.im[i] = from.im[i];
      }
    }
  }
}
