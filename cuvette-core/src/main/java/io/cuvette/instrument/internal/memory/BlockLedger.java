package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.internal.report.CallTrace;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** The live blocks by address, and those freed not long ago. Not thread-safe. */
public final class BlockLedger {
  private static final int REMEMBERED = 4096;

  private final NavigableMap<Long, KnownBlock> live = new TreeMap<>(Long::compareUnsigned);
  private final NavigableMap<Long, KnownBlock> freed = new TreeMap<>(Long::compareUnsigned);
  private final ArrayDeque<KnownBlock> freedInOrder = new ArrayDeque<>();

  /** Adds a block; whatever overlapped it is gone, or the driver would not have given it. */
  void add(KnownBlock block) {
    removeOverlaps(live, block);
    removeOverlaps(freed, block);
    live.put(block.address, block);
  }

  Collection<KnownBlock> live() {
    return live.values();
  }

  /** The live block that starts at an address. */
  @Nullable KnownBlock liveAt(long address) {
    return live.get(address);
  }

  /** The live block with an address inside. */
  @Nullable KnownBlock liveAround(long address) {
    return around(live, address);
  }

  /** A live block that shares bytes with another one; null if there is none. */
  @Nullable KnownBlock liveOverlapping(KnownBlock other) {
    Map.Entry<Long, KnownBlock> last = live.lowerEntry(other.address + other.bytes);
    return last != null && last.getValue().overlaps(other) ? last.getValue() : null;
  }

  /** The nearest live block that starts before an address. */
  @Nullable KnownBlock liveBefore(long address) {
    Map.Entry<Long, KnownBlock> entry = live.lowerEntry(address);
    return entry == null ? null : entry.getValue();
  }

  /** The freed block that started at an address. */
  @Nullable KnownBlock freedAt(long address) {
    return freed.get(address);
  }

  /** The freed block with an address inside. */
  @Nullable KnownBlock freedAround(long address) {
    return around(freed, address);
  }

  /** Moves a live block to the freed ones; null if there is none at the address. */
  @Nullable KnownBlock free(long address, CallTrace here) {
    KnownBlock block = live.remove(address);
    if (block != null) {
      block.freed(here);
      freed.put(address, block);
      freedInOrder.add(block);
      if (freedInOrder.size() > REMEMBERED) {
        KnownBlock oldest = freedInOrder.remove();
        freed.remove(oldest.address, oldest);
      }
    }
    return block;
  }

  /** Puts back a block that the driver refused to free. */
  void restore(KnownBlock block) {
    freed.remove(block.address, block);
    freedInOrder.remove(block);
    block.freed(null);
    live.put(block.address, block);
  }

  private static @Nullable KnownBlock around(NavigableMap<Long, KnownBlock> blocks, long address) {
    Map.Entry<Long, KnownBlock> entry = blocks.floorEntry(address);
    return entry != null && entry.getValue().contains(address) ? entry.getValue() : null;
  }

  private static void removeOverlaps(NavigableMap<Long, KnownBlock> blocks, KnownBlock block) {
    Map.Entry<Long, KnownBlock> before = blocks.lowerEntry(block.address);
    if (before != null && before.getValue().overlaps(block)) {
      blocks.remove(before.getKey());
    }
    blocks.subMap(block.address, true, block.address + block.bytes, false).clear();
  }
}
