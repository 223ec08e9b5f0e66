package io.cuvette.array;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Runs loops over memory of the host, which can be closed meanwhile, or be a file that becomes
 * shorter. Stateless.
 */
final class HostAccess {
  /** One, which the compiler does not know. */
  private static volatile int step = 1;

  private HostAccess() {}

  /**
   * Runs a loop.
   *
   * @throws IllegalStateException if memory is closed by another thread, or is of a page that its
   *     file does not have any more
   */
  static void run(Runnable loop, MemorySegment... memories) {
    try {
      loop.run();
      if (isFileAmong(memories)) {
        meetSafepoint();
      }
    } catch (IllegalStateException e) { // by the JVM, without a name
      MemorySegment closed = closedOne(memories);
      throw closed == null
          ? e
          : new IllegalStateException(
              "%s of an array was closed during the operation".formatted(closed), e);
    } catch (InternalError e) {
      if (!isFileAmong(memories)) {
        throw e;
      }
      throw new IllegalStateException(
          "the file that %s is mapped from has shrunk, or cannot be read"
              .formatted(Arrays.stream(memories).filter(MemorySegment::isMapped).toList()),
          e);
    }
  }

  private static @Nullable MemorySegment closedOne(MemorySegment... memories) {
    for (MemorySegment memory : memories) {
      if (!memory.scope().isAlive()) {
        return memory;
      }
    }
    return null;
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
