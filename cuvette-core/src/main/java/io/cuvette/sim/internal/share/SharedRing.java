package io.cuvette.sim.internal.share;

import io.cuvette.sim.internal.base.FileExtents;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * The records of an event that several processes use, in the head of its file. Each record has a
 * number, from 1, and its entry says who made it and whether it is done; the entry of a much older
 * record, which is done, is used again. Any process may record and ask at any time, and can write
 * anything anywhere: what is read decides when this event is done, and nothing else.
 *
 * <pre>
 *   0              8             64
 *   | last number  | newest told | entries: number, pid, done, start of the process
 * </pre>
 */
public final class SharedRing {
  /** Entries, so that as many records can be pending at once. */
  public static final int ENTRIES = 1024;

  /** More often than others who record at once change the number; one who does nothing else can. */
  private static final int MOST_TRIES = 1000;

  private static final int FIRST = 64;
  private static final int ENTRY_BYTES = 32;

  /** The size of the ring, in whole pages. */
  public static final long BYTES = FileExtents.PAGE + (long) ENTRIES * ENTRY_BYTES;

  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
  private static final int LAST = 0;
  private static final int NEWEST = 8;
  private static final int PID = 8;
  private static final int DONE = 12;
  private static final int START = 16;

  private final MemorySegment ring;

  public SharedRing(MemorySegment ring) {
    this.ring = ring;
  }

  private static long at(long number) {
    return FIRST + Math.floorMod(number, (long) ENTRIES) * ENTRY_BYTES;
  }

  /** The number of a new record; {@link #publish} makes it visible to the others. */
  public long begin() {
    return 1 + (long) LONG.getAndAdd(ring, (long) LAST, 1L);
  }

  /** Tells of a record, once the record whose entry it takes is done. */
  public void publish(long number, ProcessId recorder) {
    long at = at(number);
    ring.set(ValueLayout.JAVA_INT, at + PID, recorder.pid());
    ring.set(ValueLayout.JAVA_LONG, at + START, recorder.startTicks());
    INT.setRelease(ring, at + DONE, 0);
    LONG.setRelease(ring, at, number);
    for (int i = 0; i < MOST_TRIES && newest() < number; i++) {
      long newest = newest();
      if (newest < number && LONG.compareAndSet(ring, (long) NEWEST, newest, number)) {
        return;
      }
    }
  }

  /** The number of the newest record, 0 if there was none. */
  public long newest() {
    return (long) LONG.getVolatile(ring, (long) NEWEST);
  }

  public void done(long number) {
    INT.setRelease(ring, at(number) + DONE, 1);
  }

  /** Whether a published record is done. There are none of the numbers below 1. */
  public boolean isDone(long number) {
    long at = at(number);
    return number <= 0
        || (long) LONG.getAcquire(ring, at) != number
        || (int) INT.getAcquire(ring, at + DONE) == 1;
  }

  /** The process that made a record that is not done. */
  public ProcessId recorder(long number) {
    long at = at(number);
    return new ProcessId(
        ring.get(ValueLayout.JAVA_INT, at + PID), ring.get(ValueLayout.JAVA_LONG, at + START));
  }
}
