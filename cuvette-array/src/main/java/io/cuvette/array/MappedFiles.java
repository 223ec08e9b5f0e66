package io.cuvette.array;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** Runs loops over memory of the host, which can be a file that becomes shorter. Stateless. */
final class MappedFiles {
  /** One, which the compiler does not know. */
  private static volatile int step = 1;

  private MappedFiles() {}

  /**
   * Runs a loop.
   *
   * @throws IllegalStateException if it meets a page that the file does not have any more
   */
  static void run(Runnable loop, MemorySegment... memories) {
    if (!isFileAmong(memories)) {
      loop.run();
      return;
    }
    try {
      loop.run();
      meetSafepoint();
    } catch (InternalError e) {
      throw new IllegalStateException(
          "the file that %s is mapped from has shrunk, or cannot be read"
              .formatted(Arrays.stream(memories).filter(MemorySegment::isMapped).toList()),
          e);
    }
  }

  private static boolean isFileAmong(MemorySegment... memories) {
    for (MemorySegment memory : memories) {
      if (memory.isMapped()) {
        return true;
      }
    }
    return false;
  }

  /** Where the JVM throws the error of a page; the compiler removes a loop that counts. */
  private static void meetSafepoint() {
    int left = 2;
    while (left > 0) {
      left -= step;
    }
  }
}
