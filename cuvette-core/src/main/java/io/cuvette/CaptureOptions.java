package io.cuvette;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How a stream is captured. Immutable.
 *
 * @param mode which unsafe calls the driver refuses meanwhile
 * @param memory what allocations in the capture take from and share with other graphs; null for
 *     memory of the graph's own
 */
public record CaptureOptions(CaptureMode mode, @Nullable GraphMemory memory) {

  /** Mode RELAXED, memory of the graph's own. */
  public static final CaptureOptions DEFAULTS = new CaptureOptions(CaptureMode.RELAXED, null);

  /** Checks the values. */
  public CaptureOptions {
    Objects.requireNonNull(mode, "mode");
  }

  /**
   * {@return these options with another mode}
   *
   * @param value the mode
   */
  public CaptureOptions withMode(CaptureMode value) {
    return new CaptureOptions(Objects.requireNonNull(value, "value"), memory);
  }

  /**
   * {@return these options with memory that several graphs share}
   *
   * @param value the memory; null for memory of the graph's own
   */
  public CaptureOptions withMemory(@Nullable GraphMemory value) {
    return new CaptureOptions(mode, value);
  }
}
