package io.cuvette.internal.space;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The pieces of memory that a range of addresses is mapped in: those in use, and those that nobody
 * can use, but that could not be unmapped yet. Nothing but {@link #reserve} allocates in the Java
 * heap. Thread-safe, for threads that change different pages; that a thread sees what another did
 * to a page is up to whoever hands the page on.
 */
public final class Pieces {
  public static final long NONE = -1;

  private static final int SEGMENT_SHIFT = 12;
  private static final int SEGMENT_PAGES = 1 << SEGMENT_SHIFT;

  /** In the mark of a piece that nobody can use. */
  private static final int STUCK = 64;

  private final long base;
  private final int shift;

  /** For each page the mark of the piece that begins there: how often to double it, and 1. */
  private final AtomicReferenceArray<byte @Nullable []> segments;

  private final AtomicInteger count = new AtomicInteger();
  private final AtomicLong mappedBytes = new AtomicLong();
  private final AtomicInteger stuck = new AtomicInteger();

  /**
   * Nothing is mapped.
   *
   * @param base the first address
   * @param bytes how many there are, a multiple of the page
   * @param pageBytes the size of a page, a power of 2
   */
  public Pieces(long base, long bytes, long pageBytes) {
    this.base = base;
    this.shift = Long.numberOfTrailingZeros(pageBytes);
    this.segments =
        new AtomicReferenceArray<>((int) ((bytes >>> shift) + SEGMENT_PAGES) >>> SEGMENT_SHIFT);
  }

  private int page(long address) {
    return (int) ((address - base) >>> shift);
  }

  private long address(int page) {
    return base + ((long) page << shift);
  }

  private int pages() {
    return segments.length() << SEGMENT_SHIFT;
  }

  private int mark(int page) {
    byte[] segment = segments.getAcquire(page >>> SEGMENT_SHIFT);
    return segment == null ? 0 : segment[page & (SEGMENT_PAGES - 1)];
  }

  private void mark(int page, int mark) {
    byte[] segment = segments.getAcquire(page >>> SEGMENT_SHIFT);
    if (segment == null) {
      throw new IllegalStateException("page: " + page + " (expected: one there is room for)");
    }
    segment[page & (SEGMENT_PAGES - 1)] = (byte) mark;
  }

  private long bytesOf(int mark) {
    return mark == 0 ? 0 : 1L << (shift + (mark & ~STUCK) - 1);
  }

  /** Makes room for pieces in a range. */
  public void reserve(long from, long bytes) {
    int last = page(from + bytes - 1) >>> SEGMENT_SHIFT;
    for (int segment = page(from) >>> SEGMENT_SHIFT; segment <= last; segment++) {
      if (segments.get(segment) == null) {
        boolean _ = segments.compareAndSet(segment, null, new byte[SEGMENT_PAGES]);
      }
    }
  }

  /** Adds a piece whose size is a power of 2. */
  public void add(long at, long bytes) {
    mark(page(at), Long.numberOfTrailingZeros(bytes >>> shift) + 1);
    count.incrementAndGet();
    mappedBytes.addAndGet(bytes);
  }

  /** Removes those that can be used and begin in a range. */
  public void remove(long from, long bytes) {
    for (long at = next(from, from + bytes); at != NONE; at = next(at, from + bytes)) {
      forget(at);
      mark(page(at), 0);
    }
  }

  private void forget(long at) {
    count.decrementAndGet();
    mappedBytes.addAndGet(-bytesAt(at));
  }

  /** Notes that nobody can use the pieces that begin in a range, though they are mapped. */
  public void strand(long from, long bytes) {
    for (long at = next(from, from + bytes); at != NONE; at = next(at, from + bytes)) {
      forget(at);
      mark(page(at), mark(page(at)) | STUCK);
      stuck.incrementAndGet();
    }
  }

  /** Removes a piece that nobody can use. */
  public void removeStuck(long at) {
    mark(page(at), 0);
    stuck.decrementAndGet();
  }

  /** Whether there are pieces that nobody can use. */
  public boolean hasStuck() {
    return stuck.get() > 0;
  }

  /** The first piece that nobody can use from an address on; NONE if there is none. */
  public long nextStuck(long from) {
    return find(page(from), pages(), STUCK);
  }

  /** The first piece that can be used and begins in a range; NONE if none does. */
  public long next(long from, long end) {
    return find(page(from + (1L << shift) - 1), page(end + (1L << shift) - 1), 0);
  }

  private long find(int from, int end, int state) {
    int page = from;
    while (page < end) {
      int mark = mark(page);
      if (mark != 0 && (mark & STUCK) == state) {
        return address(page);
      }
      boolean isEmpty = segments.getAcquire(page >>> SEGMENT_SHIFT) == null;
      page = isEmpty ? (page | (SEGMENT_PAGES - 1)) + 1 : page + 1;
    }
    return NONE;
  }

  /** The bytes of the piece that begins at an address; 0 if none does. */
  public long sizeAt(long at) {
    return bytesOf(mark(page(at)));
  }

  /** The same of a piece that can be used. */
  long bytesAt(long address) {
    int page = page(address);
    int mark = page < pages() ? mark(page) : 0;
    return (mark & STUCK) == 0 ? bytesOf(mark) : 0;
  }

  /** How many can be used. */
  public int count() {
    return count.get();
  }

  /** The bytes of those that can be used. */
  public long mappedBytes() {
    return mappedBytes.get();
  }

  /** The first that lies in a range whole; NONE if none does. */
  long firstIn(long from, long end) {
    long first = next(from, end);
    return first != NONE && first + bytesAt(first) <= end ? first : NONE;
  }

  /** The bytes of those that lie in a range whole. */
  long bytesWithin(long from, long end) {
    long bytes = 0;
    for (long at = firstIn(from, end); at != NONE; at = firstIn(at + bytesAt(at), end)) {
      bytes += bytesAt(at);
    }
    return bytes;
  }

  /** The units of a page. */
  long pageUnits() {
    return 1L << (shift - Space.UNIT_SHIFT);
  }

  /** Where the piece begins that an address is in. */
  public long startOf(long address) {
    int page = page(address);
    while (page > 0 && bytesAt(address(page)) == 0) {
      page--;
    }
    return address(page);
  }
}
