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

  /** Whether a stream exists from the start. */
  public static boolean isBuiltIn(long handle) {
    return isLegacy(handle) || handle == PER_THREAD;
  }

  /** Whether it is a handle of the null stream, which has two. */
  public static boolean isLegacy(long handle) {
    return handle == NULL || handle == LEGACY;
  }

  /** What a stream is called in messages. */
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
