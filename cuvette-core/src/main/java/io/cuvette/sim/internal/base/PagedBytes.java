package io.cuvette.sim.internal.base;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Bytes that cost nothing until they are written: pages of 64 KiB in a table of two levels. A page
 * that was never written reads as {@link #UNTOUCHED}. Whole pages that are filled or copied are
 * shared until one of their users writes. Not thread-safe.
 */
public final class PagedBytes {
  /** What memory holds before its first write: not zero, so that a forgotten fill is seen. */
  public static final byte UNTOUCHED = (byte) 0xA5;

  public static final int PAGE = 1 << 16;
  private static final int GROUP = 1 << 9;
  private static final byte[] UNTOUCHED_PAGE = new byte[PAGE];

  static {
    Arrays.fill(UNTOUCHED_PAGE, UNTOUCHED);
  }

  private final long byteSize;
  private final @Nullable Page[][] groups;

  public PagedBytes(long byteSize) {
    this.byteSize = byteSize;
    long pages = (byteSize + PAGE - 1) / PAGE;
    this.groups = new @Nullable Page[Math.toIntExact((pages + GROUP - 1) / GROUP)][];
  }

  public void read(long offset, MemorySegment target) {
    long bytes = target.byteSize();
    for (long done = 0; done < bytes; ) {
      int start = (int) ((offset + done) % PAGE);
      int count = (int) Math.min(PAGE - start, bytes - done);
      Page page = page((offset + done) / PAGE);
      byte[] from = page == null ? UNTOUCHED_PAGE : page.bytes;
      MemorySegment.copy(from, start, target, ValueLayout.JAVA_BYTE, done, count);
      done += count;
    }
  }

  public void write(long offset, MemorySegment source) {
    long bytes = source.byteSize();
    for (long done = 0; done < bytes; ) {
      int start = (int) ((offset + done) % PAGE);
      int count = (int) Math.min(PAGE - start, bytes - done);
      byte[] to = writable((offset + done) / PAGE);
      MemorySegment.copy(source, ValueLayout.JAVA_BYTE, done, to, start, count);
      done += count;
    }
  }

  public void fill(long offset, long bytes, int pattern) {
    Page whole = null;
    for (long done = 0; done < bytes; ) {
      long index = (offset + done) / PAGE;
      int start = (int) ((offset + done) % PAGE);
      int count = (int) Math.min(PAGE - start, bytes - done);
      if (count == PAGE) {
        whole = whole == null ? shared(pattern) : whole;
        set(index, whole);
      } else {
        fill(MemorySegment.ofArray(writable(index)), start, count, pattern);
      }
      done += count;
    }
  }

  private static Page shared(int pattern) {
    Page page = new Page(new byte[PAGE]);
    fill(MemorySegment.ofArray(page.bytes), 0, PAGE, pattern);
    page.shared = true;
    return page;
  }

  /**
   * Fills with a 4-byte pattern, little endian as the device, with the phase of the target's start.
   */
  public static void fill(MemorySegment target, long offset, long bytes, int pattern) {
    for (long i = offset; i < offset + Math.min(Integer.BYTES, bytes); i++) {
      target.set(ValueLayout.JAVA_BYTE, i, (byte) (pattern >>> (8 * (i % Integer.BYTES))));
    }
    for (long n = Integer.BYTES; n < bytes; n *= 2) {
      MemorySegment.copy(target, offset, target, offset + n, Math.min(n, bytes - n));
    }
  }

  public void copyFrom(long offset, PagedBytes source, long sourceOffset, long bytes) {
    for (long done = 0; done < bytes; ) {
      int to = (int) ((offset + done) % PAGE);
      int from = (int) ((sourceOffset + done) % PAGE);
      int count = (int) Math.min(PAGE - Math.max(to, from), bytes - done);
      Page page = source.page((sourceOffset + done) / PAGE);
      if (count == PAGE) {
        share((offset + done) / PAGE, page);
      } else {
        byte[] old = page == null ? UNTOUCHED_PAGE : page.bytes;
        System.arraycopy(old, from, writable((offset + done) / PAGE), to, count);
      }
      done += count;
    }
  }

  /** What takes what was written. */
  public interface Written {
    void take(long offset, MemorySegment bytes);
  }

  /** Gives all pages that were ever written. */
  public void forEachWritten(Written action) {
    for (int i = 0; i < groups.length; i++) {
      @Nullable Page[] group = groups[i];
      for (int j = 0; group != null && j < group.length; j++) {
        Page page = group[j];
        if (page != null) {
          action.take(((long) i * GROUP + j) * PAGE, MemorySegment.ofArray(page.bytes));
        }
      }
    }
  }

  private void share(long index, @Nullable Page page) {
    if (page != null) {
      page.shared = true;
    }
    set(index, page);
  }

  private @Nullable Page page(long index) {
    @Nullable Page[] group = groups[(int) (index / GROUP)];
    return group == null ? null : group[(int) (index % GROUP)];
  }

  private void set(long index, @Nullable Page page) {
    @Nullable Page[] group = groups[(int) (index / GROUP)];
    if (group == null) {
      long pagesFromGroup = (byteSize + PAGE - 1) / PAGE - index / GROUP * GROUP;
      group = new @Nullable Page[(int) Math.min(GROUP, pagesFromGroup)];
      groups[(int) (index / GROUP)] = group;
    }
    group[(int) (index % GROUP)] = page;
  }

  private byte[] writable(long index) {
    Page page = page(index);
    if (page == null || page.shared) {
      // The last page is as long as the block needs: blocks of 512 bytes should not cost 64 KiB.
      int length = (int) Math.min(PAGE, byteSize - index * PAGE);
      page = new Page(Arrays.copyOf(page == null ? UNTOUCHED_PAGE : page.bytes, length));
      set(index, page);
    }
    return page.bytes;
  }

  private static final class Page {
    final byte[] bytes;
    boolean shared;

    Page(byte[] bytes) {
      this.bytes = bytes;
    }
  }
}
