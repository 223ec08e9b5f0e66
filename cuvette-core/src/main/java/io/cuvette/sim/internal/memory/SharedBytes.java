package io.cuvette.sim.internal.memory;

import io.cuvette.sim.internal.base.BlockFile;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.PagedBytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * Device memory in a file, mapped when it is first touched. Each byte is kept as its difference
 * from {@link PagedBytes#UNTOUCHED}, so that the parts of the file that were not written, and which
 * take no room, read as that. Guarded by the driver's lock; other processes may read and write the
 * same bytes at any time.
 */
public final class SharedBytes {
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
  // Eight times PagedBytes.UNTOUCHED.
  private static final long DIFFERENCE = 0xA5A5_A5A5_A5A5_A5A5L;

  private final BlockFile file;
  private final Extent extent;
  private final Arena arena = Arena.ofShared();
  private final boolean clean;
  private @Nullable MemorySegment segment;

  /** Bytes of a file; if not {@code clean}, what they hold is forgotten. */
  public SharedBytes(BlockFile file, Extent extent, boolean clean) {
    this.file = file;
    this.extent = extent;
    this.clean = clean;
  }

  public BlockFile file() {
    return file;
  }

  public Extent extent() {
    return extent;
  }

  /** The bytes as they are kept, mapped now at the latest. */
  public MemorySegment segment() {
    if (segment == null) {
      segment = file.map(extent.offset(), extent.byteSize(), arena);
      if (!clean) {
        segment.fill((byte) 0);
      }
    }
    return segment;
  }

  public void read(long offset, MemorySegment target) {
    copy(segment(), offset, target, 0, target.byteSize());
  }

  public void write(long offset, MemorySegment source) {
    copy(source, 0, segment(), offset, source.byteSize());
  }

  /** Copies and turns bytes around, without ever showing others how they are kept. */
  private static void copy(
      MemorySegment source, long from, MemorySegment target, long to, long bytes) {
    long longs = bytes / Long.BYTES * Long.BYTES;
    for (long i = 0; i < longs; i += Long.BYTES) {
      target.set(LONG, to + i, source.get(LONG, from + i) ^ DIFFERENCE);
    }
    for (long i = longs; i < bytes; i++) {
      byte old = source.get(ValueLayout.JAVA_BYTE, from + i);
      target.set(ValueLayout.JAVA_BYTE, to + i, (byte) (old ^ DIFFERENCE));
    }
  }

  public void fill(long offset, long bytes, int pattern) {
    PagedBytes.fill(segment(), offset, bytes, pattern ^ (int) DIFFERENCE);
  }

  public void copyFrom(long offset, SharedBytes source, long sourceOffset, long bytes) {
    MemorySegment.copy(source.segment(), sourceOffset, segment(), offset, bytes);
  }

  public void close() {
    arena.close();
    file.release(extent);
  }
}
