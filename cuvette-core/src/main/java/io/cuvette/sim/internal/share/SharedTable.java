package io.cuvette.sim.internal.share;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.FileExtents;
import io.cuvette.sim.internal.base.SimRefusal;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The exported allocations of a pool, in the head of its file: for each place a generation, which
 * is odd while an allocation has it, and where that allocation is. One process writes and others
 * read; but as all can write, that one reads nothing back and the others check what they read.
 * Guarded by the driver's lock.
 */
public final class SharedTable {
  private static final int PLACES = 1 << 17;
  private static final int PLACE_BYTES = 24;

  /** The size of the table, in whole pages. */
  public static final long BYTES = (long) PLACES * PLACE_BYTES;

  private static final VarHandle GENERATION = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment table;
  private final long dataBytes;
  private final long mostBytes;
  private final ArrayDeque<Integer> free = new ArrayDeque<>();

  /** The generations as this process wrote them, whatever others wrote since. */
  private long[] generations = new long[16];

  private int used;

  /**
   * The table of a file.
   *
   * @param dataBytes the data of the file
   * @param mostBytes what an allocation may have
   */
  public SharedTable(MemorySegment table, long dataBytes, long mostBytes) {
    this.table = table;
    this.dataBytes = dataBytes;
    this.mostBytes = mostBytes;
  }

  /**
   * An exported allocation. Immutable.
   *
   * @param place its place in the table
   * @param generation the generation of that place
   * @param offset where it is in the data of the file
   * @param byteSize its size
   */
  public record Entry(int place, long generation, long offset, long byteSize) {}

  public Entry add(long offset, long byteSize) {
    int place = free.isEmpty() ? used++ : free.remove();
    if (place == PLACES) {
      used--;
      throw new SimRefusal(
          CudaStatus.OUT_OF_MEMORY, "%d allocations of the pool are exported".formatted(PLACES));
    }
    long at = (long) place * PLACE_BYTES;
    if (place == generations.length) {
      generations = Arrays.copyOf(generations, 2 * place);
    }
    long generation = ++generations[place];
    table.set(ValueLayout.JAVA_LONG, at + 8, offset);
    table.set(ValueLayout.JAVA_LONG, at + 16, byteSize);
    GENERATION.setRelease(table, at, generation);
    return new Entry(place, generation, offset, byteSize);
  }

  /** Removes an allocation, so that it is not found any more. */
  public void remove(Entry entry) {
    GENERATION.setRelease(table, at(entry), ++generations[entry.place]);
  }

  /** An allocation that was removed is gone, for those too who found it before. */
  public void end(Entry entry) {
    generations[entry.place] += 2;
    GENERATION.setRelease(table, at(entry), generations[entry.place]);
    free.add(entry.place);
  }

  /** Whether the process that made an allocation has marked it as freed. */
  public boolean isGone(Entry entry) {
    return (long) GENERATION.getAcquire(table, at(entry)) - entry.generation > 1;
  }

  private static long at(Entry entry) {
    return (long) entry.place * PLACE_BYTES;
  }

  /** The allocation of a handle; null if it was freed, or is none that fits into the file. */
  public @Nullable Entry find(int place, long generation) {
    if (place < 0 || place >= PLACES || generation % 2 == 0) {
      return null;
    }
    long at = (long) place * PLACE_BYTES;
    if ((long) GENERATION.getAcquire(table, at) != generation) {
      return null;
    }
    long offset = table.get(ValueLayout.JAVA_LONG, at + 8);
    long bytes = table.get(ValueLayout.JAVA_LONG, at + 16);
    boolean sound =
        offset >= 0
            && offset % FileExtents.PAGE == 0
            && bytes > 0
            && bytes <= mostBytes
            && bytes <= dataBytes - offset;
    return sound ? new Entry(place, generation, offset, bytes) : null;
  }
}
