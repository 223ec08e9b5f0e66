package io.cuvette.sim;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** An allocation of device memory: pages that exist once written. Guarded by the driver's lock. */
final class DeviceBlock extends SimBlock {
  private @Nullable PagedBytes pages;

  DeviceBlock(SimDevice device, long address, long byteSize, long id) {
    super(device, address, byteSize, id);
  }

  @Override
  void read(long offset, MemorySegment target) {
    pages().read(offset, target);
  }

  @Override
  void write(long offset, MemorySegment source) {
    pages().write(offset, source);
  }

  @Override
  void fill(long offset, long bytes, int pattern) {
    pages().fill(offset, bytes, pattern);
  }

  void copyFrom(long offset, DeviceBlock source, long sourceOffset, long bytes) {
    pages().copyFrom(offset, source.pages(), sourceOffset, bytes);
  }

  private PagedBytes pages() {
    if (pages == null) {
      pages = new PagedBytes(byteSize);
    }
    return pages;
  }
}
