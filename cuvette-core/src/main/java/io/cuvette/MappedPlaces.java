package io.cuvette;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Where memory of other processes is mapped, and whose each place is: two handles that differ in
 * bits which the driver does not read are one allocation, and only its address tells. Guarded by
 * the {@link ImportTable}'s lock.
 */
final class MappedPlaces {
  private final TreeMap<Long, Place> places = new TreeMap<>();

  /** What was freed since a thread that asks the driver began to. */
  private final Set<Long> freed = new HashSet<>();

  private int asking;

  private record Place(ImportedMemory memory, long bytes) {}

  /** A thread begins to ask the driver to map something. */
  void beginAsking() {
    if (asking++ == 0) {
      freed.clear();
    }
  }

  void endAsking() {
    asking--;
  }

  /** Whose memory a range overlaps; null if nobody else's than the asker's. */
  @Nullable ImportedMemory owner(long address, long bytes, ImportedMemory asker) {
    Map.Entry<Long, Place> before = places.floorEntry(address);
    if (before != null) {
      Place place = before.getValue();
      if (place.memory != asker && address - before.getKey() < place.bytes) {
        return place.memory;
      }
    }
    for (Map.Entry<Long, Place> behind = places.higherEntry(address);
        behind != null && behind.getKey() - address < bytes;
        behind = places.higherEntry(behind.getKey())) {
      if (behind.getValue().memory != asker) {
        return behind.getValue().memory;
      }
    }
    return null;
  }

  /** Whether an address that the driver gave may be one that was freed before it was given. */
  boolean mayBeFreed(long address) {
    return freed.contains(address);
  }

  void put(ImportedMemory memory, long address, long bytes) {
    places.put(address, new Place(memory, bytes));
  }

  /** The memory is mapped no longer. */
  void remove(ImportedMemory memory) {
    places
        .entrySet()
        .removeIf(place -> {
          boolean gone = place.getValue().memory == memory;
          if (gone && asking > 0) {
            freed.add(place.getKey());
          }
          return gone;
        });
  }
}
