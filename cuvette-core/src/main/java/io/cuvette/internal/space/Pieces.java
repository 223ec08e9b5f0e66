package io.cuvette.internal.space;

import java.util.Arrays;

/** Where the pieces of memory are that a range of addresses is mapped in. Not thread-safe. */
public final class Pieces {
  static final long NONE = -1;

  private final long base;
  private final int shift;

  /** The pages of the piece that begins with a page; 0 if none does. */
  private short[] pages = new short[64];

  private int count;

  Pieces(long base, long pageBytes) {
    this.base = base;
    this.shift = Long.numberOfTrailingZeros(pageBytes);
  }

  private int page(long address) {
    return (int) ((address - base) >>> shift);
  }

  /** Makes room for pieces below an address. */
  public void reserve(long end) {
    int page = page(end);
    if (page > pages.length) {
      pages = Arrays.copyOf(pages, Math.max(page, pages.length * 2));
    }
  }

  public void add(long address, long bytes) {
    pages[page(address)] = (short) (bytes >>> shift);
    count++;
  }

  /** Removes those that begin in a range; gives its bytes. */
  public long remove(long address, long bytes) {
    for (int page = page(address); page < page(address + bytes); page++) {
      count -= pages[page] == 0 ? 0 : 1;
      pages[page] = 0;
    }
    return bytes;
  }

  /** How many there are. */
  public int count() {
    return count;
  }

  /** The bytes of the piece that begins at an address; 0 if none does. */
  long bytesAt(long address) {
    int page = page(address);
    return page < pages.length ? (long) pages[page] << shift : 0;
  }

  /** The first piece that lies in a range whole; NONE if none does. */
  long firstIn(long from, long end) {
    int last = Math.min(page(end), pages.length);
    for (int page = page(from + (1L << shift) - 1); page < last; page++) {
      if (pages[page] > 0) {
        return page + pages[page] <= page(end) ? base + ((long) page << shift) : NONE;
      }
    }
    return NONE;
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
  long startOf(long address) {
    int page = page(address);
    while (page > 0 && pages[page] == 0) {
      page--;
    }
    return base + ((long) page << shift);
  }
}
