package io.cuvette.cli.replay;

import io.cuvette.MemoryLimit;
import io.cuvette.cli.CommandFailure;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * The hard limit of a pool, in bytes or as a multiple of what a trace has live at most. Immutable.
 *
 * @param text how it is written on the command line
 * @param factor the multiple; 0 for none
 * @param plus what comes on top of it
 */
record ReplayLimit(String text, BigDecimal factor, MemoryLimit plus) {
  /** Does not limit. */
  static final ReplayLimit NONE = new ReplayLimit("", BigDecimal.ZERO, MemoryLimit.none());

  private static final Pattern MULTIPLE =
      Pattern.compile("([0-9]{1,9}(?:\\.[0-9]{1,9})?)x(?:\\s*\\+\\s*(.+))?");
  private static final String EXPECTED =
      "'%s' (expected: bytes such as 2GiB, a multiple of the trace's peak live such as 1.03x,"
          + " or both: 1.03x+8MiB)";

  /** Whether it limits. */
  boolean isThere() {
    return !plus.equals(MemoryLimit.none()) || factor.signum() != 0;
  }

  /**
   * The limit for a trace.
   *
   * @throws CommandFailure if that is less than the trace has live at most
   */
  MemoryLimit of(Trace trace) {
    if (!isThere()) {
      return MemoryLimit.none();
    }
    BigDecimal multiple = factor.multiply(BigDecimal.valueOf(trace.peakLiveBytes()));
    long more = plus.equals(MemoryLimit.none()) ? 0 : plus.bytesOf(0);
    BigDecimal sum = multiple.setScale(0, RoundingMode.CEILING).add(BigDecimal.valueOf(more));
    long bytes = sum.min(BigDecimal.valueOf(Long.MAX_VALUE)).longValueExact();
    if (bytes < trace.peakLiveBytes()) {
      throw new CommandFailure(
          "%s: a limit of %d bytes (expected: >= %d, its peak live; --limit %s)"
              .formatted(trace.name(), bytes, trace.peakLiveBytes(), text));
    }
    return MemoryLimit.ofBytes(bytes);
  }

  /** Reads what the command line says. Stateless. */
  static final class Converter implements ITypeConverter<ReplayLimit> {
    @Override
    public ReplayLimit convert(String given) {
      String text = given.strip();
      Matcher multiple = MULTIPLE.matcher(text);
      if (!multiple.matches()) {
        return new ReplayLimit(text, BigDecimal.ZERO, bytes(text, given));
      }
      BigDecimal factor = new BigDecimal(multiple.group(1));
      if (factor.signum() == 0) {
        throw new TypeConversionException(EXPECTED.formatted(given));
      }
      String more = multiple.group(2);
      MemoryLimit plus = more == null ? MemoryLimit.none() : bytes(more, given);
      return new ReplayLimit(text, factor, plus);
    }

    private static MemoryLimit bytes(String text, String given) {
      try {
        if (MemoryLimit.parse("limit", text) instanceof MemoryLimit.Bytes bytes) {
          return bytes;
        }
      } catch (IllegalArgumentException _) {
        // said below, with what else can be written
      }
      throw new TypeConversionException(EXPECTED.formatted(given));
    }
  }
}
