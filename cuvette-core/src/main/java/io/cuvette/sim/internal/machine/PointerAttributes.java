package io.cuvette.sim.internal.machine;

import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.BlockUse;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.memory.VirtualBlock;
import io.cuvette.sim.internal.pool.PoolUse;
import io.cuvette.sim.internal.queue.SimDevice;

/** What the driver knows about an address, by CUpointer_attribute. Stateless. */
public final class PointerAttributes {
  private static final long CONTEXT_BASE = 0x60L << 56;

  private PointerAttributes() {}

  /** An attribute of a place, as a device asks. */
  public static long get(int attribute, SimPlace place, SimDevice asking) {
    SimBlock block = place.block();
    PoolUse use = PoolUse.of(block);
    boolean isPlain = block.use() == null;
    boolean onDevice = !(block instanceof HostBlock);
    boolean managed = block instanceof HostBlock host && host.kind == HostBlock.Kind.MANAGED;
    return switch (attribute) {
      case 1 -> CONTEXT_BASE + 16 * (block.device.index + 1L);
      case PointerAttribute.MEMORY_TYPE ->
          onDevice || managed ? MemoryType.DEVICE : MemoryType.HOST;
      case 3 -> block.address + place.offset();
      case 4 -> hostPointer(place, onDevice);
      case 7, 20 -> block.id;
      // The driver does not say so of managed memory that is in a pool.
      case PointerAttribute.IS_MANAGED -> managed && isPlain ? 1 : 0;
      case PointerAttribute.DEVICE_ORDINAL -> block.device.index;
      case PointerAttribute.IS_LEGACY_IPC_CAPABLE ->
          onDevice && isPlain && !block.isImported() ? 1 : 0;
      case 15 -> onDevice ? 1 : 0;
      case PointerAttribute.RANGE_START, 19 -> block.address;
      case PointerAttribute.RANGE_SIZE, 18 -> block.byteSize;
      case 13 -> 1;
      case 14 -> handleTypes(place);
      case 16 -> access(place, asking);
      case PointerAttribute.MEMPOOL_HANDLE -> use == null ? 0 : use.pool.handle();
      case 6, 21 -> 0;
      default ->
          throw SimRefusal.invalidValue(
              "attribute: %d (expected: a readable CUpointer_attribute)".formatted(attribute));
    };
  }

  private static int access(SimPlace place, SimDevice asking) {
    BlockUse use = place.block().use();
    return use == null ? MemAccessFlags.READ_WRITE : use.access(asking, place.offset(), 1);
  }

  private static int handleTypes(SimPlace place) {
    PoolUse use = PoolUse.of(place.block());
    if (use != null) {
      return use.pool.handleTypes;
    }
    return place.block() instanceof VirtualBlock mapped
        ? mapped.piece(place.offset()).memory.properties.handleTypes()
        : 0;
  }

  private static long hostPointer(SimPlace place, boolean onDevice) {
    if (onDevice) {
      throw SimRefusal.invalidValue("device memory has no host pointer");
    }
    return place.block().address + place.offset();
  }
}
