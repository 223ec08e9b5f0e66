package io.cuvette.sim.internal.base;

/**
 * A range of bytes of a file, of a pool or of the pages of a device. Immutable.
 *
 * @param offset where it begins, in bytes
 * @param byteSize how long it is
 */
public record Extent(long offset, long byteSize) {

  /** Where the next one may begin. */
  public long end() {
    return offset + byteSize;
  }

  /** The bytes that both have. */
  public long overlap(Extent other) {
    return Math.max(0, Math.min(end(), other.end()) - Math.max(offset, other.offset));
  }
}
