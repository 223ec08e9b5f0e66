package io.cuvette.array;

import java.util.Arrays;

/** The types of elements as DLPack writes them (DLDataType). Stateless. */
final class DlpackType {
  private static final int BOOL = 6;

  private DlpackType() {}

  /** DLDataTypeCode. */
  static int code(ElementType type) {
    return switch (type.kind()) {
      case SIGNED -> 0;
      case UNSIGNED -> 1;
      case FLOATING -> type == ElementType.BFLOAT16 ? 4 : 2;
      case COMPLEX -> 5;
      case BOOL -> BOOL;
    };
  }

  /** The type for a code and a size; refuses what there is no type for. */
  static ElementType of(int code, int bits, int lanes) {
    if (lanes != 1) {
      throw new IllegalArgumentException("lanes: %d (expected: 1)".formatted(lanes));
    }
    return Arrays.stream(ElementType.values())
        .filter(type -> code(type) == code && type.bytes() * Byte.SIZE == bits)
        .findFirst()
        .orElseThrow(() ->
            new IllegalArgumentException(
                "type: code %d with %d bits (expected: one of ElementType)".formatted(code, bits)));
  }
}
