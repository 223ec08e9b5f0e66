package io.cuvette.sim;

/** What the driver knows about an address, by CUpointer_attribute. Stateless. */
final class PointerAttributes {
  private static final int HOST = 1;
  private static final int DEVICE = 2;
  private static final long CONTEXT_BASE = 0x60L << 56;
  private static final int READ_WRITE = 3;

  private PointerAttributes() {}

  /** An attribute of a place, as a device asks. */
  static long get(int attribute, SimPlace place, SimDevice asking) {
    SimBlock block = place.block();
    PoolUse use = block.use();
    boolean onDevice = block instanceof DeviceBlock;
    boolean managed = block instanceof HostBlock host && host.kind == HostBlock.Kind.MANAGED;
    return switch (attribute) {
      case 1 -> CONTEXT_BASE + 16 * (block.device.index + 1L);
      case 2 -> onDevice || managed ? DEVICE : HOST;
      case 3 -> block.address + place.offset();
      case 4 -> hostPointer(place, onDevice);
      case 7, 20 -> block.id;
      // The driver does not say so of managed memory that is in a pool.
      case 8 -> managed && use == null ? 1 : 0;
      case 9 -> block.device.index;
      case 10 -> onDevice && use == null && !block.isImported() ? 1 : 0;
      case 15 -> onDevice ? 1 : 0;
      case 11, 19 -> block.address;
      case 12, 18 -> block.byteSize;
      case 13 -> 1;
      case 14 -> use == null ? 0 : use.pool.handleTypes;
      case 16 -> use == null ? READ_WRITE : use.pool.access.of(asking);
      case 17 -> use == null ? 0 : use.pool.handle();
      case 6, 21 -> 0;
      default ->
          throw SimRefusal.invalidValue(
              "attribute: %d (expected: a readable CUpointer_attribute)".formatted(attribute));
    };
  }

  private static long hostPointer(SimPlace place, boolean onDevice) {
    if (onDevice) {
      throw SimRefusal.invalidValue("device memory has no host pointer");
    }
    return place.block().address + place.offset();
  }
}
