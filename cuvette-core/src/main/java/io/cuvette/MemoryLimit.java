package io.cuvette;

import io.cuvette.internal.ByteSize;
import java.math.BigDecimal;
import java.math.RoundingMode;

/**
 * A hard limit on the bytes a pool holds from the driver on one device: live blocks and cached ones
 * together. It is one and the same in every pool. Immutable.
 */
public sealed interface MemoryLimit {

  /** The bytes this limit means on a device, {@link Long#MAX_VALUE} for none. */
  long bytesOf(long deviceBytes);

  /** No limit. */
  static MemoryLimit none() {
    return None.NONE;
  }

  /** A number of bytes; 0 is no limit, as in CuPy. */
  static MemoryLimit ofBytes(long bytes) {
    return bytes == 0 ? none() : new Bytes(bytes);
  }

  /** A fraction of the device's memory, 0 to 1; 0 is no limit, as in CuPy. */
  static MemoryLimit ofFraction(double fraction) {
    return fraction == 0 ? none() : new Fraction(fraction);
  }

  /**
   * Reads a limit: {@code 1073741824}, {@code 8GiB}, {@code 50%}; 0 and 0% are no limit.
   *
   * @throws IllegalArgumentException naming the text and the rule
   */
  static MemoryLimit parse(String name, String text) {
    String trimmed = text.strip();
    if (!trimmed.endsWith("%")) {
      return ofBytes(ByteSize.parse(name, trimmed));
    }
    try {
      double percent = Double.parseDouble(trimmed.substring(0, trimmed.length() - 1).strip());
      return ofFraction(percent / 100);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: 0%% to 100%%)".formatted(name, text), e);
    }
  }

  /**
   * A number of bytes.
   *
   * @param bytes at least 1
   */
  record Bytes(long bytes) implements MemoryLimit {
    public Bytes {
      if (bytes < 1) {
        throw new IllegalArgumentException(
            "memory limit: %d bytes (expected: >= 1, or 0 for no limit)".formatted(bytes));
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
    public Fraction {
      if (!(fraction > 0 && fraction <= 1)) {
        throw new IllegalArgumentException(
            "memory limit: fraction %s (expected: > 0 and <= 1, or 0 for no limit)"
                .formatted(fraction));
      }
    }

    @Override
    public long bytesOf(long deviceBytes) {
      return BigDecimal.valueOf(fraction)
          .multiply(BigDecimal.valueOf(deviceBytes))
          .setScale(0, RoundingMode.DOWN)
          .longValueExact();
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
