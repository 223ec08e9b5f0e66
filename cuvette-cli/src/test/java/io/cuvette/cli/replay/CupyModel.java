package io.cuvette.cli.replay;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * CuPy's pool in the plainest way: units of 512 bytes, one ordered set of free blocks for each
 * stream, best fit, exact split, full merge, and never a block of another stream. Not thread-safe.
 */
final class CupyModel {
  private static final long UNIT = 512;

  private final Map<Integer, TreeSet<Block>> arenas = new HashMap<>();
  private long heldBytes;
  private long nextAddress = UNIT;

  /** A part of an allocation, linked to its neighbours. */
  private static final class Block {
    final long address;
    final int stream;
    long bytes;
    @Nullable Block before;
    @Nullable Block after;

    Block(long address, long bytes, int stream) {
      this.address = address;
      this.bytes = bytes;
      this.stream = stream;
    }
  }

  /** The most bytes that CuPy would hold for a trace. */
  static long peakHeldBytes(Trace trace, boolean singleStream) {
    CupyModel model = new CupyModel();
    @Nullable Block[] live = new Block[trace.slotCount()];
    for (int i = 0; i < trace.operations(); i++) {
      long bytes = trace.bytes()[i];
      int slot = trace.slots()[i];
      Block block = live[slot];
      if (bytes == Trace.FREE) {
        model.free(block);
        live[slot] = null;
      } else {
        live[slot] = model.allocate(bytes, singleStream ? 0 : trace.streams()[i]);
      }
    }
    return model.heldBytes;
  }

  private @Nullable Block allocate(long bytes, int stream) {
    if (bytes == 0) {
      return null;
    }
    long rounded = (bytes + UNIT - 1) / UNIT * UNIT;
    TreeSet<Block> free = arena(stream);
    Block found = free.ceiling(new Block(0, rounded, stream));
    if (found == null) {
      heldBytes += rounded;
      Block whole = new Block(nextAddress, rounded, stream);
      nextAddress += rounded + UNIT;
      return whole;
    }
    free.remove(found);
    if (found.bytes > rounded) {
      split(found, rounded, free);
    }
    return found;
  }

  private static void split(Block head, long bytes, TreeSet<Block> free) {
    Block tail = new Block(head.address + bytes, head.bytes - bytes, head.stream);
    tail.before = head;
    tail.after = head.after;
    if (tail.after != null) {
      tail.after.before = tail;
    }
    head.after = tail;
    head.bytes = bytes;
    free.add(tail);
  }

  private void free(@Nullable Block freed) {
    if (freed == null) {
      return;
    }
    TreeSet<Block> free = arena(freed.stream);
    Block merged = freed;
    Block before = freed.before;
    if (before != null && free.remove(before)) {
      join(before, freed);
      merged = before;
    }
    Block after = merged.after;
    if (after != null && free.remove(after)) {
      join(merged, after);
    }
    free.add(merged);
  }

  private static void join(Block head, Block tail) {
    head.bytes += tail.bytes;
    head.after = tail.after;
    if (tail.after != null) {
      tail.after.before = head;
    }
  }

  private TreeSet<Block> arena(int stream) {
    return arenas.computeIfAbsent(
        stream,
        _ ->
            new TreeSet<>(
                Comparator.comparingLong((Block b) -> b.bytes).thenComparingLong(b -> b.address)));
  }
}
