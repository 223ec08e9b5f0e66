package io.cuvette.sim.internal.base;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Memory of the program that is mapped from files, which may have become shorter since. A device
 * still has the pages that were page-locked; what is read here of those that are gone is undefined,
 * and what is written there is lost. Stateless.
 */
public final class MappedFiles {
  private static final long PAGE_BYTES = 4096;

  /** One, which the compiler does not know. */
  private static volatile int step = 1;

  private MappedFiles() {}

  /**
   * Reads or writes memory; false if it is mapped from a file that does not have it any more.
   *
   * @param memory tells whether it is of a file
   */
  public static boolean access(MemorySegment memory, Runnable access) {
    if (!memory.isMapped()) {
      access.run();
      return true;
    }
    try {
      run(access);
      return true;
    } catch (InternalError e) {
      return false;
    }
  }

  /** Reads or writes memory that has to be there: the JVM's error comes here and not later. */
  public static void run(Runnable access) {
    access.run();
    meetSafepoint();
  }

  /** Something that is done with the bytes of a page. */
  @FunctionalInterface
  public interface PageAccess {
    /** Reads or writes bytes that begin at an offset of the memory. */
    void run(long at, MemorySegment page);
  }

  /** Accesses memory page by page; those that are gone are left out. */
  public static void forEachPage(MemorySegment memory, PageAccess access) {
    long bytes = memory.byteSize();
    long next = 0;
    for (long at = 0; at < bytes; at = next) {
      next = Math.min(bytes, at + PAGE_BYTES - (memory.address() + at) % PAGE_BYTES);
      long from = at;
      MemorySegment page = memory.asSlice(from, next - from);
      boolean _ = access(memory, () -> access.run(from, page));
    }
  }

  /** Whether each page of memory is there. */
  public static boolean areThere(MemorySegment memory) {
    return access(memory, () -> touch(memory));
  }

  private static void touch(MemorySegment memory) {
    int sum = 0;
    for (long at = 0; at < memory.byteSize(); at += PAGE_BYTES * step) {
      sum += memory.get(ValueLayout.JAVA_BYTE, at);
    }
    step = sum == Integer.MIN_VALUE ? 1 : step; // so that each is read
  }

  /**
   * The JVM throws the error at the thread's next safepoint, which has to be before this is past.
   */
  private static void meetSafepoint() {
    int left = 2;
    while (left > 0) {
      left -= step;
    }
  }
}
