package io.cuvette.sim.internal.machine;

import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.BlockUse;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.MappedPiece;
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
    boolean onDevice =
        block instanceof VirtualBlock mapped ? mapped.isOnDevice : !(block instanceof HostBlock);
    boolean managed = block instanceof HostBlock host && host.kind == HostBlock.Kind.MANAGED;
    return switch (attribute) {
      case 1 -> CONTEXT_BASE + 16 * (block.device.index + 1L);
      case PointerAttribute.MEMORY_TYPE ->
          onDevice || managed ? MemoryType.DEVICE : MemoryType.HOST;
      case 3 -> block.address + place.offset();
      case 4 -> hostPointer(place);
      case 6 -> managed ? 1 : 0; // operations that are synchronous
      case 7, 20 -> block.id;
      // The driver does not say so of managed memory that is in a pool.
      case PointerAttribute.IS_MANAGED -> managed && isPlain ? 1 : 0;
      case PointerAttribute.DEVICE_ORDINAL -> block.device.index;
      case PointerAttribute.IS_LEGACY_IPC_CAPABLE ->
          onDevice && isPlain && !block.isImported() ? 1 : 0;
      case 15 -> onDevice && !(block instanceof VirtualBlock) ? 1 : 0;
      case PointerAttribute.RANGE_START -> reserved(place).offset();
      case PointerAttribute.RANGE_SIZE -> reserved(place).byteSize();
      case 18 -> mapping(place).byteSize();
      case 19 -> mapping(place).offset();
      case 13 -> 1;
      case 14 -> handleTypes(place);
      case 16 -> access(place, asking);
      case PointerAttribute.MEMPOOL_HANDLE -> use == null ? 0 : use.pool.handle();
      case 21 -> onDevice && isPlain ? 1 : 0; // the decompression of the hardware
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

  /** An allocation; of mapped memory the range that was reserved, and not what is mapped there. */
  private static Extent reserved(SimPlace place) {
    SimBlock block = place.block();
    return block instanceof VirtualBlock mapped
        ? mapped.reserved(place.offset())
        : new Extent(block.address, block.byteSize);
  }

  /** An allocation; of mapped memory one mapping. */
  private static Extent mapping(SimPlace place) {
    SimBlock block = place.block();
    if (block instanceof VirtualBlock mapped) {
      MappedPiece piece = mapped.piece(place.offset());
      return new Extent(piece.address, piece.memory.byteSize());
    }
    return new Extent(block.address, block.byteSize);
  }

  private static long hostPointer(SimPlace place) {
    if (!(place.block() instanceof HostBlock)) {
      throw SimRefusal.invalidValue(
          "%s has no host pointer (expected: managed or page-locked memory)"
              .formatted(place.block()));
    }
    return place.block().address + place.offset();
  }
}
