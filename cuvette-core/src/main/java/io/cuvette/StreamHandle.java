package io.cuvette;

/** The handles of streams that exist from the start, and how streams are called. Stateless. */
final class StreamHandle {
  static final long NULL = 0;
  static final long LEGACY = 1;
  static final long PER_THREAD = 2;

  private StreamHandle() {}

  static boolean isBuiltIn(long handle) {
    return isLegacy(handle) || handle == PER_THREAD;
  }

  /** Whether it is that of the null stream, which has two. */
  static boolean isLegacy(long handle) {
    return handle == NULL || handle == LEGACY;
  }

  static String name(long handle) {
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
