package io.cuvette.sim.internal.memory;

import io.cuvette.sim.internal.base.MappedFiles;
import io.cuvette.sim.internal.base.SimRefusal;
import java.lang.foreign.MemorySegment;

/**
 * A position in a block. Immutable.
 *
 * @param block the block
 * @param offset bytes from its start
 */
public record SimPlace(SimBlock block, long offset) {
  private static final int UNTOUCHED = 0xA5A5_A5A5;

  public long address() {
    return block.address + offset;
  }

  /** Whether the memory is that of a device. */
  public boolean isOnDevice() {
    return block instanceof DeviceBlock || (block instanceof VirtualBlock v && v.isOnDevice);
  }

  public void checkRoom(String name, long bytes) {
    if (bytes < 0 || bytes > block.byteSize - offset) {
      throw SimRefusal.invalidValue(
          "%s: %d bytes from offset %d (expected: inside %s)"
              .formatted(name, bytes, offset, block));
    }
  }

  /** Refuses what a GPU does not: to copy between ranges with common bytes is undefined there. */
  public void checkApart(SimPlace source, long bytes) {
    long shared = bytes - Math.abs(address() - source.address());
    if (shared > 0) {
      throw SimRefusal.invalidValue(
          "%d bytes are in the source and in the target (expected: none) of %s"
              .formatted(shared, block));
    }
  }

  /** Copies from another place; both are inside blocks that may have been freed meanwhile. */
  public void copyFrom(SimPlace source, long bytes) {
    block.checkLive();
    source.block.checkLive();
    if (source.block.isLost()) {
      block.fill(offset, bytes, UNTOUCHED);
    } else if (!block.isLost()) {
      copy(source, bytes);
    }
  }

  private void copy(SimPlace source, long bytes) {
    if (block instanceof DeviceBlock to && source.block instanceof DeviceBlock from) {
      to.copyFrom(offset, from, source.offset, bytes);
    } else if (block instanceof VirtualBlock to && !(source.block instanceof HostBlock)) {
      to.copyFrom(offset, source.block, source.offset, bytes);
    } else if (block instanceof DeviceBlock to && source.block instanceof VirtualBlock from) {
      from.copyTo(to, offset, source.offset, bytes);
    } else if (source.block instanceof HostBlock from) {
      writeFrom(from, source.offset, bytes);
    } else {
      HostBlock to = (HostBlock) block;
      to.checkWritable();
      MemorySegment content = to.content().asSlice(offset, bytes);
      boolean _ = to.access(() -> source.block.read(source.offset, content));
    }
  }

  /** Of a file that has become shorter since, what is left of it. */
  private void writeFrom(HostBlock from, long start, long bytes) {
    MemorySegment content = from.content().asSlice(start, bytes);
    if (!from.access(() -> block.write(offset, content))) {
      MappedFiles.forEachPage(content, (at, page) -> block.write(offset + at, page));
    }
  }

  public void fill(long bytes, int pattern, DevicePages by) {
    block.checkLive();
    if (block instanceof HostBlock host && host.kind == HostBlock.Kind.MANAGED) {
      host.pages.bring(by, offset, bytes);
    }
    if (!block.isLost()) {
      block.fill(offset, bytes, pattern);
    }
  }
}
