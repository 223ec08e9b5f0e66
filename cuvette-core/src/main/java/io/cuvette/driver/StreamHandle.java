package io.cuvette.driver;

/** The handles of the streams that exist from the start. */
public final class StreamHandle {
  /** The null stream. */
  public static final long NULL = 0;

  /** The legacy default stream, which is the null stream under a handle of its own. */
  public static final long LEGACY = 1;

  /** The default stream of the calling thread. */
  public static final long PER_THREAD = 2;

  private StreamHandle() {}

  /**
   * {@return whether a stream is one of the default streams}
   *
   * @param handle the handle of the stream
   */
  public static boolean isBuiltIn(long handle) {
    return isLegacy(handle) || handle == PER_THREAD;
  }

  /**
   * {@return whether a handle is one of the two of the null stream}
   *
   * @param handle the handle of the stream
   */
  public static boolean isLegacy(long handle) {
    return handle == NULL || handle == LEGACY;
  }

  /**
   * {@return the name of a stream in messages}
   *
   * @param handle the handle of the stream
   */
  public static String name(long handle) {
    if (handle == NULL) {
      return "null stream";
    }
    if (handle == LEGACY) {
      return "legacy default stream";
    }
    return handle == PER_THREAD
        ? "per-thread default stream"
        : "stream 0x" + Long.toHexString(handle);
  }
}
