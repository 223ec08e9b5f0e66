package io.cuvette.ffm.part;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.ffm.call.Contexts;
import io.cuvette.ffm.link.Layouts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;

/** Writes and reads the C structure of the properties of memory. Thread-safe. */
final class AllocationStructure {
  private static final long TYPE = at("type");
  private static final long HANDLE_TYPES = at("requestedHandleTypes");
  private static final long LOCATION_TYPE = at("location");
  private static final long LOCATION_ID = LOCATION_TYPE + Integer.BYTES;

  private AllocationStructure() {}

  /** A CUmemAllocationProp; a device is given as a CUdevice. */
  static MemorySegment of(AllocationProperties properties, int locationId) {
    MemorySegment structure = empty();
    structure.set(Layouts.INT, TYPE, MemAllocationType.PINNED);
    structure.set(Layouts.INT, HANDLE_TYPES, properties.handleTypes());
    structure.set(Layouts.INT, LOCATION_TYPE, properties.locationType());
    structure.set(Layouts.INT, LOCATION_ID, locationId);
    return structure;
  }

  /** Room for the driver to write one into. */
  static MemorySegment empty() {
    return Arena.ofAuto().allocate(Layouts.ALLOCATION); // all zero
  }

  /** What the driver has written. */
  static AllocationProperties read(MemorySegment structure, Contexts contexts) {
    int type = structure.get(Layouts.INT, LOCATION_TYPE);
    int id = structure.get(Layouts.INT, LOCATION_ID);
    return new AllocationProperties(
        structure.get(Layouts.INT, HANDLE_TYPES),
        type,
        type == MemLocationType.DEVICE ? contexts.ordinal(id) : id);
  }

  private static long at(String member) {
    return Layouts.ALLOCATION.byteOffset(PathElement.groupElement(member));
  }
}
