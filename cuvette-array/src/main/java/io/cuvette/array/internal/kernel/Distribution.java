package io.cuvette.array.internal.kernel;

import io.cuvette.array.ElementType;
import java.util.Locale;

/** What random numbers are drawn from. */
public enum Distribution {
  /** [0, 1), evenly. */
  UNIFORM,
  /** The normal distribution. */
  NORMAL,
  /** Integers, evenly. */
  INTEGERS;

  private static final int BLOCK_BYTES = 16;

  /** How many numbers a block of the generator gives. */
  public int perBlock(ElementType type) {
    return this == INTEGERS ? 2 : BLOCK_BYTES / type.bytes();
  }

  /** The name of the kernel for a type. */
  public String kernel(ElementType type) {
    String of = this == INTEGERS ? Integer.toString(type.bytes()) : KernelNames.tag(type);
    return "cuvette_%s_%s".formatted(name().toLowerCase(Locale.ROOT), of);
  }
}
