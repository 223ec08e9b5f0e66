package io.cuvette.ffm.part;

import io.cuvette.driver.PoolProperties;
import io.cuvette.ffm.link.Layouts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/** Writes the C structures that calls about pools take. Thread-safe. */
final class PoolStructures {
  private PoolStructures() {}

  /** A CUmemPoolProps; a device is given as a CUdevice. */
  static MemorySegment properties(PoolProperties properties, int locationId) {
    MemorySegment pool = Arena.ofAuto().allocate(Layouts.POOL); // all zero
    pool.set(Layouts.INT, at(Layouts.POOL, "allocType"), properties.allocationType());
    pool.set(Layouts.INT, at(Layouts.POOL, "handleTypes"), properties.handleTypes());
    long location = at(Layouts.POOL, "location");
    pool.set(Layouts.INT, location, properties.locationType());
    pool.set(Layouts.INT, location + Integer.BYTES, locationId);
    pool.set(Layouts.SIZE, at(Layouts.POOL, "maxSize"), properties.maxBytes());
    return pool;
  }

  /**
   * CUmemAccessDesc, one after the other; devices are given as CUdevice.
   *
   * @param access one for each location, or one for all
   */
  static MemorySegment accesses(int locationType, int[] locationIds, int[] access) {
    if (access.length != 1 && access.length != locationIds.length) {
      throw new IllegalArgumentException(
          "access: %d flags for %d locations (expected: 1 or %d)"
              .formatted(access.length, locationIds.length, locationIds.length));
    }
    MemorySegment all = Arena.ofAuto().allocate(Layouts.ACCESS, locationIds.length);
    long flags = at(Layouts.ACCESS, "flags");
    for (int i = 0; i < locationIds.length; i++) {
      long start = i * Layouts.ACCESS.byteSize();
      all.set(Layouts.INT, start, locationType);
      all.set(Layouts.INT, start + Integer.BYTES, locationIds[i]);
      all.set(Layouts.INT, start + flags, access[access.length == 1 ? 0 : i]);
    }
    return all;
  }

  private static long at(StructLayout structure, String member) {
    return structure.byteOffset(PathElement.groupElement(member));
  }
}
