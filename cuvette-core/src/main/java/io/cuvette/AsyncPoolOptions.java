package io.cuvette;

/**
 * How an {@link AsyncMemoryPool} treats pools that are not its own. Immutable.
 *
 * @param thresholdRaised whether the release threshold of such a pool is raised to keep everything
 *     while the object is open, and restored when it is closed; a pool of {@link
 *     AsyncPoolChoice#ofNew} always keeps what is freed
 */
public record AsyncPoolOptions(boolean thresholdRaised) {

  /** Keeps what is freed, whosever the pool is. */
  public static final AsyncPoolOptions DEFAULTS = new AsyncPoolOptions(true);

  /**
   * {@return these options with or without raising the release thresholds of pools made elsewhere}
   *
   * @param raised whether they are raised
   */
  public AsyncPoolOptions withThresholdRaised(boolean raised) {
    return new AsyncPoolOptions(raised);
  }
}
