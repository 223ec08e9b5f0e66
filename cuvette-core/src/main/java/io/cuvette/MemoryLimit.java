package io.cuvette;

import io.cuvette.internal.base.ByteSize;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Objects;

/**
 * A hard limit on the bytes a pool holds from the driver on one device: live blocks and cached ones
 * together. It is one and the same in every pool. Immutable.
 */
public sealed interface MemoryLimit {

  /**
   * The bytes this limit means on a device.
   *
   * @param deviceBytes the memory of the device
   * @return at least 1, {@link Long#MAX_VALUE} if it does not limit
   */
  long bytesOf(long deviceBytes);

  /** {@return the limit that does not limit} */
  static MemoryLimit none() {
    return None.NONE;
  }

  /**
   * {@return a limit in bytes}
   *
   * @param bytes the limit in bytes, >= 0; 0 for no limit, as in CuPy
   * @throws IllegalArgumentException for a negative number
   */
  static MemoryLimit ofBytes(long bytes) {
    return bytes == 0 ? none() : new Bytes(bytes);
  }

  /**
   * {@return a limit of a fraction of the device's memory}
   *
   * @param fraction above 0 and at most 1, or 0 for no limit, as in CuPy
   * @throws IllegalArgumentException for another number, or none
   */
  static MemoryLimit ofFraction(double fraction) {
    return fraction == 0 ? none() : new Fraction(fraction);
  }

  /**
   * Reads a limit: {@code 1073741824}, {@code 8GiB}, {@code 1.5 GB}, {@code 50%}. 0 with any unit,
   * and 0%, are no limit, as in CuPy; nothing else is. A number of bytes is whole, and a limit is
   * at least one byte.
   *
   * @param name what the text is the value of, for the message
   * @param text the limit as text
   * @return the limit
   * @throws IllegalArgumentException naming the text and the rule
   */
  static MemoryLimit parse(String name, String text) {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(text, "text");
    if (!text.strip().endsWith("%")) {
      return ofBytes(ByteSize.parse(name, text, ", or a part of the device such as 50%"));
    }
    BigDecimal fraction = ByteSize.parsePercent(name, text);
    return fraction.signum() == 0 ? none() : new Fraction(fraction.doubleValue());
  }

  /**
   * A number of bytes.
   *
   * @param bytes the limit in bytes, >= 1
   */
  record Bytes(long bytes) implements MemoryLimit {
    /** Creates a limit. */
    public Bytes {
      if (bytes < 1) {
        throw new IllegalArgumentException(
            "memory limit: %d bytes (expected: >= 1; ofBytes(0) and none() are no limit)"
                .formatted(bytes));
      }
    }

    @Override
    public long bytesOf(long deviceBytes) {
      return bytes;
    }
  }

  /**
   * A fraction of the device's memory.
   *
   * @param fraction above 0, at most 1
   */
  record Fraction(double fraction) implements MemoryLimit {
    /** Creates a limit. */
    public Fraction {
      if (!(fraction > 0 && fraction <= 1)) {
        throw new IllegalArgumentException(
            "memory limit: fraction %s (expected: > 0 and <= 1; ofFraction(0) and none() are no limit)"
                .formatted(fraction));
      }
    }

    @Override
    public long bytesOf(long deviceBytes) {
      long bytes =
          BigDecimal.valueOf(fraction)
              .multiply(BigDecimal.valueOf(deviceBytes))
              .setScale(0, RoundingMode.DOWN)
              .longValueExact();
      return Math.max(1, bytes);
    }
  }

  /** No limit. */
  enum None implements MemoryLimit {
    /** The only one. */
    NONE;

    @Override
    public long bytesOf(long deviceBytes) {
      return Long.MAX_VALUE;
    }
  }
}
