package io.cuvette.sim;

/** What the driver knows about an address, by CUpointer_attribute. Stateless. */
final class PointerAttributes {
  private static final int HOST = 1;
  private static final int DEVICE = 2;
  private static final long CONTEXT_BASE = 0x60L << 56;
  private static final int READ_WRITE = 3;

  private PointerAttributes() {}

  static long get(int attribute, SimPlace place) {
    SimBlock block = place.block();
    boolean onDevice = block instanceof DeviceBlock;
    boolean managed = block instanceof HostBlock host && host.kind == HostBlock.Kind.MANAGED;
    return switch (attribute) {
      case 1 -> CONTEXT_BASE + 16 * (block.device.index + 1L);
      case 2 -> onDevice || managed ? DEVICE : HOST;
      case 3 -> block.address + place.offset();
      case 4 -> hostPointer(place, onDevice);
      case 7, 20 -> block.id;
      case 8 -> managed ? 1 : 0;
      case 9 -> block.device.index;
      case 10, 15 -> onDevice ? 1 : 0;
      case 11, 19 -> block.address;
      case 12, 18 -> block.byteSize;
      case 13 -> 1;
      case 16 -> READ_WRITE;
      case 6, 14, 17, 21 -> 0;
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
