package io.cuvette;

/**
 * How an event is made. Immutable.
 *
 * @param blockingSync whether {@link CudaEvent#synchronize()} blocks the thread instead of spinning
 * @param timing whether the event measures time
 * @param interprocess whether another process can use it; excludes timing
 */
public record EventOptions(boolean blockingSync, boolean timing, boolean interprocess) {

  /** With timing, spinning, for this process. */
  public static final EventOptions DEFAULTS = new EventOptions(false, true, false);

  /** For ordering only, the cheapest. */
  public static final EventOptions ORDER_ONLY = new EventOptions(false, false, false);

  /** Creates options. */
  public EventOptions {
    if (interprocess && timing) {
      throw new IllegalArgumentException(
          "interprocess: true, timing: true (expected: timing false, CUDA cannot time events across"
              + " processes)");
    }
  }

  /**
   * {@return these options with waiting that blocks the thread, or spins}
   *
   * @param value whether it is
   */
  public EventOptions withBlockingSync(boolean value) {
    return new EventOptions(value, timing, interprocess);
  }

  /**
   * {@return these options with or without time measurement}
   *
   * @param value whether it is
   */
  public EventOptions withTiming(boolean value) {
    return new EventOptions(blockingSync, value, interprocess);
  }

  /**
   * {@return these options with or without use by another process; disable timing first}
   *
   * @param value whether it is
   */
  public EventOptions withInterprocess(boolean value) {
    return new EventOptions(blockingSync, timing, value);
  }
}
