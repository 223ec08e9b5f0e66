package io.cuvette.sim.internal.memory;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.lang.foreign.MemorySegment;

/**
 * Mappings of one place next to each other, as what copies and kernels see: a block whose bytes are
 * those of the memory that is mapped when they are touched. Guarded by the driver's lock.
 */
public final class VirtualBlock extends SimBlock {
  private final VirtualSpace space;

  /** Whether the memory is that of a device, and not of the host. */
  public final boolean isOnDevice;

  /** The mean size of a mapping, in bytes. */
  public final long meanPieceBytes;

  VirtualBlock(VirtualSpace space, MappedPiece first, MappedPiece last, int pieces) {
    super(
        first.memory.content.device,
        first.address,
        last.end() - first.address,
        first.memory.content.id);
    this.space = space;
    this.isOnDevice = first.memory.isOnDevice();
    this.meanPieceBytes = byteSize / pieces;
    use(new MappingUse());
  }

  /** What a device may do with bytes of the mappings, and nothing else. */
  private final class MappingUse implements BlockUse {
    @Override
    public boolean isAllocated() {
      return true;
    }

    @Override
    public int access(SimDevice by, long offset, long bytes) {
      return space.access(by, address + offset, Math.min(bytes, byteSize - offset));
    }

    @Override
    public String kind() {
      return "mappings";
    }
  }

  /** The mapping at an offset. */
  public MappedPiece piece(long offset) {
    return space.touched(address + offset);
  }

  /** The reserved range that an offset is in. */
  public Extent reserved(long offset) {
    return space.reserved(address + offset);
  }

  /** The refusal of calls that free memory. */
  public SimRefusal notFreed() {
    return SimRefusal.invalidValue("%s is mapped (expected: cuMemUnmap)".formatted(this));
  }

  private interface Part {
    void use(DeviceBlock content, long at, long done, long bytes);
  }

  private void forEach(long offset, long bytes, Part part) {
    for (long done = 0; done < bytes; ) {
      MappedPiece piece = piece(offset + done);
      long at = address + offset + done - piece.address;
      long count = Math.min(piece.byteSize() - at, bytes - done);
      part.use(piece.memory.content, at, done, count);
      done += count;
    }
  }

  @Override
  public void read(long offset, MemorySegment target) {
    forEach(
        offset,
        target.byteSize(),
        (content, at, done, bytes) -> content.read(at, target.asSlice(done, bytes)));
  }

  @Override
  public void write(long offset, MemorySegment source) {
    forEach(
        offset,
        source.byteSize(),
        (content, at, done, bytes) -> content.write(at, source.asSlice(done, bytes)));
  }

  @Override
  public void fill(long offset, long bytes, int pattern) {
    // Mappings start at multiples of any pattern.
    forEach(offset, bytes, (content, at, _, count) -> content.fill(at, count, pattern));
  }

  /** Copies from another block of memory of devices. */
  void copyFrom(long offset, SimBlock source, long sourceOffset, long bytes) {
    forEach(
        offset,
        bytes,
        (content, at, done, count) -> copy(content, at, source, sourceOffset + done, count));
  }

  /** Copies into plain memory of a device. */
  void copyTo(DeviceBlock target, long targetOffset, long offset, long bytes) {
    forEach(
        offset,
        bytes,
        (content, at, done, count) -> target.copyFrom(targetOffset + done, content, at, count));
  }

  private static void copy(
      DeviceBlock target, long offset, SimBlock source, long sourceOffset, long bytes) {
    if (source instanceof VirtualBlock mapped) {
      mapped.copyTo(target, offset, sourceOffset, bytes);
    } else {
      target.copyFrom(offset, (DeviceBlock) source, sourceOffset, bytes);
    }
  }
}
