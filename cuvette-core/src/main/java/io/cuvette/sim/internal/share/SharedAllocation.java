package io.cuvette.sim.internal.share;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.memory.PhysicalMemory;
import io.cuvette.sim.internal.memory.SharedBytes;
import org.jspecify.annotations.Nullable;

/** Memory without an address that several processes map: a file for each. Stateless. */
public final class SharedAllocation {
  private SharedAllocation() {}

  /** The memory in a file of another process. */
  public static PhysicalMemory imported(SharedFile file, DeviceMemory memory, long id) {
    SharedPlace place = file.place();
    AllocationProperties properties =
        new AllocationProperties(
            MemHandleType.FILE_DESCRIPTOR,
            place.locationType(),
            place.isHost() ? place.locationId() : memory.device.index);
    return PhysicalMemory.imported(properties, memory, mapped(file), id);
  }

  private static SharedBytes mapped(SharedFile file) {
    SharedBytes bytes = new SharedBytes(file, new Extent(0, file.dataBytes()), true);
    try {
      bytes.segment(); // now, since the file may be gone when it is touched
      return bytes;
    } catch (RuntimeException | Error e) {
      bytes.close();
      throw e;
    }
  }

  /** The file of memory, which is made when it is first exported. */
  public static SharedFile file(SimSharing sharing, PhysicalMemory memory) {
    AllocationProperties properties = memory.properties;
    if (properties.handleTypes() != MemHandleType.FILE_DESCRIPTOR) {
      throw SimRefusal.invalidValue(
          "memory made with handle types %d (expected: %d)"
              .formatted(properties.handleTypes(), MemHandleType.FILE_DESCRIPTOR));
    }
    SharedFile known = fileOf(memory);
    if (known != null) {
      return known;
    }
    SharedFile file =
        SharedFile.create(sharing, SharedFile.Kind.ALLOCATION, place(memory), memory.byteSize());
    memory.content.share(mapped(file));
    return file;
  }

  private static SharedPlace place(PhysicalMemory memory) {
    AllocationProperties properties = memory.properties;
    return memory.isOnDevice()
        ? SharedPlace.of(memory.content.device)
        : SharedPlace.ofHost(
            new PoolKind(
                properties.locationType(), properties.locationId(), MemAllocationType.PINNED));
  }

  /** The file that memory is in; null if it was never exported. */
  public static @Nullable SharedFile fileOf(PhysicalMemory memory) {
    SharedBytes shared = memory.content.shared();
    return shared == null ? null : (SharedFile) shared.file();
  }
}
