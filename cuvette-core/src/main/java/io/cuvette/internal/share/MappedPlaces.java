package io.cuvette.internal.share;

import io.cuvette.internal.session.PeerHandles;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Where memory of other processes is mapped, and whose each place is: two handles that differ in
 * bits which the driver does not read are one allocation, which only its address shows. Guarded by
 * the {@link Mappings}'s lock.
 */
public final class MappedPlaces {
  private final TreeMap<Long, Place> places = new TreeMap<>();

  private record Place(Mapping memory, long bytes) {}

  /** Whose memory a range overlaps; null if nobody else's than the asker's. */
  public @Nullable Mapping owner(long address, long bytes, Mapping asker) {
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

  /**
   * Whose memory a driver would map a range over that is not mapped yet, as far as that is known
   * from where its neighbours are; null if nobody's, or if nothing is known.
   */
  public @Nullable Mapping ownerOfUnmapped(PeerHandles.Range range, Mapping asker) {
    for (Map.Entry<Long, Place> place : places.entrySet()) {
      PeerHandles.Range near = place.getValue().memory.range();
      if (near != null && near.block().equals(range.block())) {
        long address = place.getKey() - near.offset() + range.offset();
        return owner(address, range.bytes(), asker);
      }
    }
    return null;
  }

  public void put(Mapping memory, long address, long bytes) {
    places.put(address, new Place(memory, bytes));
  }

  /** The memory is mapped no longer. */
  public void remove(Mapping memory) {
    places.values().removeIf(place -> place.memory == memory);
  }
}
