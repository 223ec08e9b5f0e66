package io.cuvette;

import io.cuvette.internal.base.WireFormat;
import io.cuvette.internal.channel.IpcFrame;
import io.cuvette.internal.paged.PageExport;
import io.cuvette.internal.paged.PageFiles;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.UUID;

/**
 * What another process imports a buffer of an {@link ElasticMemoryPool} by: a descriptor of the
 * operating system for each page that holds a part of it, and where it is in them. {@link
 * ElasticMemoryPool#export} makes it, an {@link IpcChannel} passes it on, {@link
 * CudaDevice#importBuffer(PageHandles, CudaStream)} takes it. Pages are shared whole, with what
 * else is in them: send it to no process that may not use that.
 *
 * <p>It owns its descriptors and closes them. While they are open, the memory of the pages stays,
 * also when the pool has released it. The collector closes those of one that is forgotten.
 * Thread-safe.
 */
public final class PageHandles implements AutoCloseable {
  /** The most pages that a buffer can be exported with. */
  public static final int MOST_PAGES = IpcFrame.MOST_PAGES;

  private static final int MAGIC = 0x43565047; // CVPG
  private static final String NAME = "PageHandles";
  private static final int DESCRIPTOR_BYTES = descriptorBytes();

  private final BufferDescriptor descriptor;
  private final PageFiles files;

  /** Takes over the files. */
  private PageHandles(BufferDescriptor descriptor, PageFiles files) {
    this.descriptor = descriptor;
    this.files = files;
    long offset = descriptor.offset();
    long end = offset + descriptor.byteSize();
    long all = files.allBytes();
    if (offset >= files.bytes(0) || end > all || end <= all - files.bytes(files.count() - 1)) {
      throw new IllegalArgumentException(
          "%s: %d bytes at offset %d of %d pages with %d bytes (expected: from the first to the last)"
              .formatted(NAME, descriptor.byteSize(), offset, files.count(), all));
    }
  }

  private static int descriptorBytes() {
    UUID none = new UUID(0, 0);
    return BufferDescriptor.ofPages(0, 1, none, none).toBytes().length;
  }

  /** Those of a part of memory, which end with the result. */
  static PageHandles of(PageExport part, long byteSize, UUID process, UUID device) {
    if (part.files().count() > MOST_PAGES) {
      throw new IllegalArgumentException(
          "%s: %d pages (expected: at most %d)".formatted(NAME, part.files().count(), MOST_PAGES));
    }
    return new PageHandles(
        BufferDescriptor.ofPages(part.offset(), byteSize, process, device), part.files());
  }

  /** Those that came with some content, which are the result's. */
  static PageHandles of(byte[] content, List<AllocationHandle> handles) {
    int count = handles.size();
    ByteBuffer value = WireFormat.open(NAME, content, MAGIC, bytes(count));
    byte[] descriptor = new byte[DESCRIPTOR_BYTES];
    value.get(descriptor);
    BufferDescriptor part = BufferDescriptor.fromBytes(descriptor);
    if (part.kind() != BufferDescriptor.Kind.PAGES) {
      throw new IllegalArgumentException(
          "%s, kind: %s (expected: %s)".formatted(NAME, part.kind(), BufferDescriptor.Kind.PAGES));
    }
    long[] sizes = new long[count];
    long most = Long.MAX_VALUE;
    for (int i = 0; i < count; i++) {
      sizes[i] = value.getLong();
      if (sizes[i] <= 0 || sizes[i] > most) {
        throw new IllegalArgumentException(
            "%s, size of page %d: %d (expected: 1 to %d)".formatted(NAME, i, sizes[i], most));
      }
      most -= sizes[i];
    }
    return new PageHandles(
        part, new PageFiles(handles.stream().map(AllocationHandle::core).toList(), sizes));
  }

  private static int bytes(int pages) {
    return WireFormat.HEADER_BYTES + DESCRIPTOR_BYTES + pages * Long.BYTES + Integer.BYTES;
  }

  byte[] toBytes() {
    ByteBuffer value = WireFormat.begin(MAGIC, bytes(files.count())).put(descriptor.toBytes());
    for (int i = 0; i < files.count(); i++) {
      value.putLong(files.bytes(i));
    }
    return WireFormat.end(value);
  }

  List<AllocationHandle> handles() {
    return files.handles().stream().map(AllocationHandle::new).toList();
  }

  PageFiles files() {
    return files;
  }

  void checkOpen() {
    if (isClosed()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /** {@return where the buffer is in the pages, of kind {@link BufferDescriptor.Kind#PAGES}} */
  public BufferDescriptor descriptor() {
    return descriptor;
  }

  /** {@return the number of pages, 1 to {@link #MOST_PAGES}} */
  public int pages() {
    return files.count();
  }

  /** {@return the size of all pages in bytes: so many addresses an importer needs} */
  public long pageBytes() {
    return files.allBytes();
  }

  /** {@return whether the descriptors are closed} */
  public boolean isClosed() {
    return files.isClosed();
  }

  /** Closes the descriptors (close); buffers that were imported stay. Idempotent. */
  @Override
  public void close() {
    files.close();
  }

  @Override
  public String toString() {
    return "%s[%d bytes in %d pages of %d bytes]%s"
        .formatted(
            NAME, descriptor.byteSize(), pages(), pageBytes(), isClosed() ? " (closed)" : "");
  }
}
