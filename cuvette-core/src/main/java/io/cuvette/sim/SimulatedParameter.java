package io.cuvette.sim;

import java.util.Objects;

/**
 * The type of a parameter of a simulated kernel. Immutable.
 *
 * @param name the name in messages
 * @param byteSize the size in bytes, >= 1
 * @param alignment what its offset is a multiple of, in bytes; a power of two
 */
public record SimulatedParameter(String name, int byteSize, int alignment) {
  /** An address. */
  public static final SimulatedParameter POINTER = new SimulatedParameter("pointer", 8, 8);

  /** A number of 32 bits. */
  public static final SimulatedParameter INT = new SimulatedParameter("int", 4, 4);

  /** A number of 64 bits. */
  public static final SimulatedParameter LONG = new SimulatedParameter("long", 8, 8);

  /** A floating-point number of 32 bits. */
  public static final SimulatedParameter FLOAT = new SimulatedParameter("float", 4, 4);

  /** A floating-point number of 64 bits. */
  public static final SimulatedParameter DOUBLE = new SimulatedParameter("double", 8, 8);

  /**
   * A type.
   *
   * @throws IllegalArgumentException if the size is no positive number, or the alignment no power
   *     of two
   */
  public SimulatedParameter {
    Objects.requireNonNull(name, "name");
    if (byteSize < 1) {
      throw new IllegalArgumentException("byteSize: %d (expected: >= 1)".formatted(byteSize));
    }
    if (Integer.bitCount(alignment) != 1 || alignment < 1) {
      throw new IllegalArgumentException(
          "alignment: %d (expected: a power of two)".formatted(alignment));
    }
  }

  /**
   * {@return the type of a structure that is passed by value}
   *
   * @param byteSize the size in bytes, >= 1
   * @param alignment the largest alignment of its members in bytes; a power of two
   */
  public static SimulatedParameter struct(int byteSize, int alignment) {
    return new SimulatedParameter("struct", byteSize, alignment);
  }

  @Override
  public String toString() {
    return name + " of " + byteSize + " bytes";
  }
}
