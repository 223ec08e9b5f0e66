package io.cuvette.internal.space;

import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** Memory taken out of a free run to be unmapped, in whole pieces. Confined to one thread. */
public final class Victim {
  private final Space space;
  public final long address;
  public final long bytes;

  /** How many pieces. */
  public final int pieces;

  /** The next one of a list. */
  public @Nullable Victim next;

  /** The run, in use for that. */
  int run = Space.NONE;

  private boolean isUnmapped;

  Victim(Space space, long address, long bytes, int pieces) {
    this.space = space;
    this.address = address;
    this.bytes = bytes;
    this.pieces = pieces;
  }

  /**
   * Takes so many bytes, or what there is, out of spaces, the last of them first. If the Java heap
   * is full, takes what was taken so far.
   *
   * @param idleNanos how long it was free; any time if empty
   * @return the first of a list; null if there is nothing to take
   * @throws OutOfMemoryError if it could take nothing
   */
  public static @Nullable Victim carve(Space[] spaces, long wantedBytes, OptionalLong idleNanos) {
    Victim first = null;
    Victim last = null;
    long left = wantedBytes;
    for (int kind = spaces.length - 1; kind >= 0 && left > 0; ) {
      Victim victim = carve(spaces[kind], left, idleNanos, first != null);
      if (victim == null) {
        kind--;
        continue;
      }
      if (last == null) {
        first = victim;
      } else {
        last.next = victim;
      }
      last = victim;
      left -= victim.bytes;
    }
    return first;
  }

  private static @Nullable Victim carve(
      Space space, long wantedBytes, OptionalLong idleNanos, boolean isEnough) {
    try {
      return space.carve(Math.ceilDiv(wantedBytes, Space.UNIT_BYTES), idleNanos);
    } catch (OutOfMemoryError e) {
      if (!isEnough) {
        throw e;
      }
      return null;
    }
  }

  /** Notes that it is unmapped. */
  public void unmapped() {
    isUnmapped = true;
  }

  public boolean isUnmapped() {
    return isUnmapped;
  }

  /** The run is a hole, or free again if it could not be unmapped. */
  public void end() {
    if (isUnmapped) {
      space.unmapped(this);
    } else {
      space.restore(this);
    }
  }
}
