package io.cuvette;

/**
 * Why memory that an {@link ElasticMemoryPool} holds on a device is in no block, in bytes.
 * Immutable.
 *
 * @param heldBytes all that is held
 * @param movableBytes done, and in whole pieces: it serves any block
 * @param boundBytes done, but in pieces that blocks in use share: it serves blocks that fit
 * @param orderedBytes freed, but its stream was not found idle since: it serves that stream
 * @param graphBytes kept for graphs that are there
 * @param pendingBytes closed, but other streams may still use it
 */
public record Fragmentation(
    long heldBytes,
    long movableBytes,
    long boundBytes,
    long orderedBytes,
    long graphBytes,
    long pendingBytes) {

  /** {@return all that is held and in no block} */
  public long freeBytes() {
    return movableBytes + boundBytes + orderedBytes + graphBytes + pendingBytes;
  }

  /** {@return the part of what is held that cannot be moved to where it is needed, 0 to 1} */
  public double ratio() {
    return heldBytes == 0 ? 0 : (double) (freeBytes() - movableBytes) / heldBytes;
  }
}
