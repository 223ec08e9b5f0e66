package io.cuvette.internal.space;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/**
 * Memory taken out of a free run to be unmapped.
 *
 * @param run in use for that
 * @param bytes of whole pieces
 * @param pieces how many
 */
public record Victim(Space space, int run, long address, long bytes, int pieces) {
  /**
   * Takes so many bytes, or what there is, out of spaces, the last of them first. Takes nothing if
   * the Java heap is full.
   *
   * @param idleNanos how long it was free; any time if empty
   */
  public static List<Victim> carve(Space[] spaces, long wantedBytes, OptionalLong idleNanos) {
    List<Victim> victims = new ArrayList<>();
    boolean isComplete = false;
    try {
      long left = wantedBytes;
      for (int kind = spaces.length - 1; kind >= 0; kind--) {
        while (left > 0) {
          long units = Math.ceilDiv(left, Space.UNIT_BYTES);
          Victim victim = spaces[kind].carve(units, idleNanos);
          if (victim == null) {
            break;
          }
          victims.add(victim);
          left -= victim.bytes();
        }
      }
      isComplete = true;
      return victims;
    } finally {
      if (!isComplete) {
        victims.forEach(victim -> victim.space().restore(victim));
      }
    }
  }
}
