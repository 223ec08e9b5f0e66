package io.cuvette.sim.internal.memory;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.PagedBytes;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * An allocation of device memory: pages that exist once written, or bytes of a file that other
 * processes can map. Guarded by the driver's lock.
 */
public final class DeviceBlock extends SimBlock {
  /** The memory that it is in. */
  public final DeviceMemory memory;

  private @Nullable PagedBytes pages;
  private @Nullable SharedBytes shared;
  private @Nullable Extent piece;

  public DeviceBlock(DeviceMemory memory, long address, long byteSize, long id) {
    super(memory.device, address, byteSize, id);
    this.memory = memory;
  }

  /** Says in which part of a page the block is. */
  public void piece(Extent taken) {
    piece = taken;
  }

  /** The part of a page that the block is in; null if it has pages of its own. */
  public @Nullable Extent piece() {
    return piece;
  }

  /** Gives the block bytes of a file, which get what was written so far. */
  public void share(SharedBytes bytes) {
    if (pages != null) {
      pages.forEachWritten(bytes::write);
      pages = null;
    }
    shared = bytes;
    memory.shared.add(this);
  }

  /** The bytes that other processes can map; null if they cannot. */
  public @Nullable SharedBytes shared() {
    return shared;
  }

  /** Lets go of the bytes; the block is dead. */
  public void release() {
    if (shared != null) {
      shared.close();
      shared = null;
      memory.shared.remove(this);
    }
  }

  @Override
  public void read(long offset, MemorySegment target) {
    if (shared != null) {
      shared.read(offset, target);
    } else {
      pages().read(offset, target);
    }
  }

  @Override
  public void write(long offset, MemorySegment source) {
    if (shared != null) {
      shared.write(offset, source);
    } else {
      pages().write(offset, source);
    }
  }

  @Override
  public void fill(long offset, long bytes, int pattern) {
    if (shared != null) {
      shared.fill(offset, bytes, pattern);
    } else {
      pages().fill(offset, bytes, pattern);
    }
  }

  public void copyFrom(long offset, DeviceBlock source, long sourceOffset, long bytes) {
    if (shared == null && source.shared == null) {
      pages().copyFrom(offset, source.pages(), sourceOffset, bytes);
    } else if (shared != null && source.shared != null) {
      shared.copyFrom(offset, source.shared, sourceOffset, bytes);
    } else {
      copyInPieces(offset, source, sourceOffset, bytes);
    }
  }

  private void copyInPieces(long offset, DeviceBlock source, long sourceOffset, long bytes) {
    MemorySegment piece = MemorySegment.ofArray(new byte[(int) Math.min(bytes, PagedBytes.PAGE)]);
    for (long done = 0; done < bytes; done += piece.byteSize()) {
      MemorySegment part = piece.asSlice(0, Math.min(piece.byteSize(), bytes - done));
      source.read(sourceOffset + done, part);
      write(offset + done, part);
    }
  }

  /** Loses what was written. */
  public void forget() {
    pages = null;
  }

  private PagedBytes pages() {
    if (pages == null) {
      pages = new PagedBytes(byteSize);
    }
    return pages;
  }
}
