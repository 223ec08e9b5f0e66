package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.internal.order.Access.Range;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.TreeMap;

/**
 * Where the host sees memory that the driver knows by another address, as long as it does. Not
 * thread-safe.
 */
public final class HostViews {
  private static final int FEW = 64;

  private final TreeMap<Long, View> views = new TreeMap<>();
  private int many = FEW;

  private record View(MemorySegment segment, long address) {
    boolean isAlive() {
      return segment.scope().isAlive();
    }
  }

  void add(MemorySegment segment, long address) {
    if (segment.address() == address || segment.byteSize() == 0) {
      return;
    }
    views.put(segment.address(), new View(segment, address));
    if (views.size() > many) {
      views.values().removeIf(view -> !view.isAlive());
      many = Math.max(FEW, 2 * views.size());
    }
  }

  /** A range of the host as the driver knows it. */
  Range resolve(Range range) {
    Map.Entry<Long, View> below = range.host() ? views.floorEntry(range.address()) : null;
    if (below == null || !below.getValue().isAlive()) {
      return range;
    }
    View view = below.getValue();
    long from = range.address() - below.getKey();
    return from <= view.segment.byteSize() - range.bytes()
        ? new Range(view.address + from, range.bytes(), range.kind(), false)
        : range;
  }
}
