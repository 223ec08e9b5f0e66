package io.cuvette.cli.replay;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Collects the operations of a trace and pairs frees with allocations. Not thread-safe. */
final class TraceBuilder {
  private final PointerMap live = new PointerMap();
  private final IntList liveEmpty = new IntList();
  private final IntList freeSlots = new IntList();
  private final Map<Long, Integer> streamIndexes = new HashMap<>();
  private final LongList streamIds = new LongList();
  private final LongList bytes = new LongList();
  private final IntList slots = new IntList();
  private final IntList streams = new IntList();
  private final IntList lines = new IntList();
  private long[] slotBytes = new long[1 << 8];
  private int slotCount;
  private long liveBytes;
  private long peakLiveBytes;
  private long failures;

  /** Adds an allocation; what was expected instead if it cannot be. */
  @Nullable String allocate(long pointer, long size, long stream, int line) {
    if (pointer == 0 && size != 0) {
      return "a pointer, or the action 'allocate failure'";
    }
    if (size > Long.MAX_VALUE - liveBytes) {
      return "less than 8 EiB live at once";
    }
    int slot = freeSlots.isEmpty() ? slotCount : freeSlots.removeLast();
    if (pointer == 0) {
      // Blocks without bytes share the null pointer.
      liveEmpty.add(slot);
    } else if (!live.add(pointer, slot)) {
      return "a pointer that is not allocated already";
    }
    take(slot, size);
    add(size, slot, stream, line);
    return null;
  }

  private void take(int slot, long size) {
    if (slot == slotCount) {
      slotCount++;
      if (slot == slotBytes.length) {
        slotBytes = java.util.Arrays.copyOf(slotBytes, slot * 2);
      }
    }
    slotBytes[slot] = size;
    liveBytes += size;
    peakLiveBytes = Math.max(peakLiveBytes, liveBytes);
  }

  /** Adds a free; what was expected instead if it cannot be. */
  @Nullable String free(long pointer, long stream, int line) {
    int slot =
        pointer != 0
            ? live.remove(pointer)
            : liveEmpty.isEmpty() ? PointerMap.NONE : liveEmpty.removeLast();
    if (slot == PointerMap.NONE) {
      return "a pointer that is allocated";
    }
    liveBytes -= slotBytes[slot];
    freeSlots.add(slot);
    add(Trace.FREE, slot, stream, line);
    return null;
  }

  /** Counts an allocation that failed when it was recorded. */
  void failure() {
    failures++;
  }

  Trace build(String name) {
    return new Trace(
        name,
        bytes.toArray(),
        slots.toArray(),
        streams.toArray(),
        lines.toArray(),
        slotCount,
        streamIds.toArray(),
        peakLiveBytes,
        failures);
  }

  private void add(long size, int slot, long stream, int line) {
    Integer index = streamIndexes.get(stream);
    if (index == null) {
      index = streamIndexes.size();
      streamIndexes.put(stream, index);
      streamIds.add(stream);
    }
    bytes.add(size);
    slots.add(slot);
    streams.add(index);
    lines.add(line);
  }
}
