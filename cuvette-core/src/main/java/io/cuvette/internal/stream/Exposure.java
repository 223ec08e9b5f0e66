package io.cuvette.internal.stream;

/**
 * Whether captures of one kind are possible in a stream. Operations that began when they were not
 * have ended before one begins. Thread-safe.
 */
final class Exposure {
  private final DriverStream stream;
  private volatile boolean possible;

  /** Whether every operation knows that. */
  private volatile boolean isKnownToAll;

  Exposure(DriverStream stream) {
    this.stream = stream;
  }

  boolean isPossible() {
    return possible;
  }

  /**
   * From now on they are possible, but in the null stream.
   *
   * @param holds how often the caller holds the stream
   */
  void begin(int holds) {
    if (!isKnownToAll && !stream.isLegacy()) {
      stream.streams.captures().arePossible();
      possible = true;
      stream.ending().awaitEntries(holds);
      isKnownToAll = true;
    }
  }
}
