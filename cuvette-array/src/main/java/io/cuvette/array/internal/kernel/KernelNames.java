package io.cuvette.array.internal.kernel;

import io.cuvette.array.BinaryOperation;
import io.cuvette.array.ElementType;
import io.cuvette.array.Reduction;
import io.cuvette.array.UnaryOperation;

/** The names of the kernels, and the modules that they are in. Stateless. */
public final class KernelNames {
  private KernelNames() {}

  /** How the code calls a type. */
  public static String tag(ElementType type) {
    return switch (type) {
      case BOOLEAN -> "bool";
      case INT8 -> "i8";
      case INT16 -> "i16";
      case INT32 -> "i32";
      case INT64 -> "i64";
      case UINT8 -> "u8";
      case UINT16 -> "u16";
      case UINT32 -> "u32";
      case UINT64 -> "u64";
      case FLOAT16 -> "f16";
      case BFLOAT16 -> "bf16";
      case FLOAT32 -> "f32";
      case FLOAT64 -> "f64";
      case COMPLEX64 -> "c64";
      case COMPLEX128 -> "c128";
    };
  }

  /** A kernel and the module that it is in. */
  public record Place(String module, String kernel) {}

  private static Place place(String operation, ElementType type, String part) {
    return new Place(tag(type) + "_" + part, "cuvette_%s_%s".formatted(operation, tag(type)));
  }

  /** The kernel of an operation, for the type that it computes with. */
  public static Place of(UnaryOperation operation, ElementType type) {
    return place(operation.kernel(), type, operation.isRealFunction() ? "maths" : "elements");
  }

  /** The kernel of an operation, for the type that it computes with. */
  public static Place of(BinaryOperation operation, ElementType type) {
    return place(operation.kernel(), type, operation.isRealFunction() ? "maths" : "elements");
  }

  /** The kernel of a reduction of elements of a type. */
  public static Place of(Reduction reduction, ElementType type) {
    return place(reduction.kernel(), type, "reductions");
  }

  /** The kernel that converts elements, or copies them. */
  public static Place conversion(ElementType from, ElementType to) {
    return place("from_" + tag(from), to, "elements");
  }

  /** The kernel that chooses between two by a third. */
  public static Place where(ElementType type) {
    return place("where", type, "elements");
  }

  /** The kernel that limits elements. */
  public static Place clip(ElementType type) {
    return place("clip", type, "elements");
  }

  /** The kernel for random numbers of a type. */
  public static Place random(Distribution distribution, ElementType type) {
    return new Place("common", distribution.kernel(type));
  }

  /** The kernel that transposes matrices of elements of a size. */
  public static Place transpose(int bytes) {
    return new Place("common", "cuvette_transpose_" + bytes);
  }
}
