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

  public EventOptions {
    if (interprocess && timing) {
      throw new IllegalArgumentException(
          "interprocess: true, timing: true (expected: timing false, CUDA cannot time events across"
              + " processes)");
    }
  }

  /** Whether waiting blocks the thread. */
  public EventOptions withBlockingSync(boolean value) {
    return new EventOptions(value, timing, interprocess);
  }

  /** Whether the event measures time. */
  public EventOptions withTiming(boolean value) {
    return new EventOptions(blockingSync, value, interprocess);
  }

  /** Whether another process can use it; switch timing off first. */
  public EventOptions withInterprocess(boolean value) {
    return new EventOptions(blockingSync, timing, value);
  }
}
