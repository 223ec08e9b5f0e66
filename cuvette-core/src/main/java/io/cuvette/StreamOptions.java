package io.cuvette;

/**
 * How a stream is made. Immutable.
 *
 * @param nonBlocking whether the stream runs beside the null stream instead of in turns with it
 * @param priority lower is more urgent; must lie in {@link CudaDevice#priorityRange()}
 */
public record StreamOptions(boolean nonBlocking, int priority) {

  /** Blocking with the null stream, priority 0. */
  public static final StreamOptions DEFAULTS = new StreamOptions(false, 0);

  /** Not blocking with the null stream, priority 0. */
  public static final StreamOptions NON_BLOCKING = new StreamOptions(true, 0);

  /**
   * {@return these options with or without synchronization with the null stream}
   *
   * @param value the value
   */
  public StreamOptions withNonBlocking(boolean value) {
    return new StreamOptions(value, priority);
  }

  /**
   * {@return these options with another priority; lower is more urgent}
   *
   * @param value the value
   */
  public StreamOptions withPriority(int value) {
    return new StreamOptions(nonBlocking, value);
  }
}
