package io.cuvette.sim;

import io.cuvette.driver.CudaStatus;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * The exported allocations of a pool, in the head of its file: for each place a generation, which
 * is odd while an allocation has it, and where that allocation is. One process writes, others read.
 * Guarded by the driver's lock.
 */
final class SharedTable {
  private static final int PLACES = 1 << 17;
  private static final int PLACE_BYTES = 24;

  /** The size of the table, in whole pages. */
  static final long BYTES = (long) PLACES * PLACE_BYTES;

  private static final VarHandle GENERATION = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment table;
  private final ArrayDeque<Integer> free = new ArrayDeque<>();
  private int used;

  SharedTable(MemorySegment table) {
    this.table = table;
  }

  /**
   * An exported allocation. Immutable.
   *
   * @param place its place in the table
   * @param generation the generation of that place
   * @param offset where it is in the data of the file
   * @param byteSize its size
   */
  record Entry(int place, long generation, long offset, long byteSize) {}

  Entry add(long offset, long byteSize) {
    int place = free.isEmpty() ? used++ : free.remove();
    if (place == PLACES) {
      used--;
      throw new SimRefusal(
          CudaStatus.OUT_OF_MEMORY, "%d allocations of the pool are exported".formatted(PLACES));
    }
    long at = (long) place * PLACE_BYTES;
    long generation = table.get(ValueLayout.JAVA_LONG, at) + 1;
    table.set(ValueLayout.JAVA_LONG, at + 8, offset);
    table.set(ValueLayout.JAVA_LONG, at + 16, byteSize);
    GENERATION.setRelease(table, at, generation);
    return new Entry(place, generation, offset, byteSize);
  }

  void remove(Entry entry) {
    long at = (long) entry.place * PLACE_BYTES;
    GENERATION.setRelease(table, at, entry.generation + 1);
    free.add(entry.place);
  }

  /** The allocation of a handle; null if it was freed. */
  @Nullable Entry find(int place, long generation) {
    if (place < 0 || place >= PLACES || generation % 2 == 0) {
      return null;
    }
    long at = (long) place * PLACE_BYTES;
    if ((long) GENERATION.getAcquire(table, at) != generation) {
      return null;
    }
    long offset = table.get(ValueLayout.JAVA_LONG, at + 8);
    long bytes = table.get(ValueLayout.JAVA_LONG, at + 16);
    boolean sound = offset >= 0 && bytes >= 0 && bytes <= Long.MAX_VALUE / 2 - offset;
    return sound ? new Entry(place, generation, offset, bytes) : null;
  }
}
