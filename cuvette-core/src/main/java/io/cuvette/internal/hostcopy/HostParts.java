package io.cuvette.internal.hostcopy;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;

/**
 * Segments of the host one after the other, as the bytes of one transfer, divided into pieces that
 * threads copy. Immutable, but for what they hold.
 */
public final class HostParts {
  /** The bytes of each piece but the last. */
  public static final int PIECE_BYTES = 256 << 10;

  /** The bytes that are counted in pieces. */
  private static final long MOST_BYTES = (long) Integer.MAX_VALUE * PIECE_BYTES;

  private static final int[] NO_PIECES = {};
  private static final long[] NO_OFFSETS = {};

  private static final MemorySegment NOTHING = MemorySegment.ofArray(new byte[0]);

  /** Who stands for the threads that help: whether they may access a segment. */
  private static final Thread HELPER = Thread.ofPlatform().unstarted(() -> {});

  /** One, which the compiler does not know. */
  private static volatile int step = 1;

  private final List<MemorySegment> parts;
  private final String name;
  private final long byteSize;
  private final boolean isForAllThreads;

  /** In which part each piece begins, and where in it; of one part nobody asks. */
  private final int[] firstPart;

  private final long[] offsetInPart;

  private HostParts(String name, MemorySegment part, boolean written) {
    this.name = name;
    this.parts = List.of(part);
    check(part, 0, written);
    this.byteSize = countable(name, part.byteSize());
    this.isForAllThreads = part.isAccessibleBy(HELPER);
    this.firstPart = NO_PIECES;
    this.offsetInPart = NO_OFFSETS;
  }

  private HostParts(String name, List<MemorySegment> parts, boolean written) {
    this.name = name;
    this.parts = parts;
    boolean shared = true;
    long[] sizes; // so that a million rows, which are far apart, are looked at once
    if (parts instanceof ArrayRows rows && rows.areArrays()) {
      sizes = rows.byteSizes();
    } else {
      sizes = new long[parts.size()];
      for (int i = 0; i < sizes.length; i++) {
        MemorySegment part = parts.get(i);
        check(part, i, written);
        shared &= part.isAccessibleBy(HELPER);
        sizes[i] = part.byteSize();
      }
    }
    this.byteSize = sum(name, sizes);
    this.isForAllThreads = shared;
    this.firstPart = new int[pieces()];
    this.offsetInPart = new long[pieces()];
    divide(sizes);
  }

  /** Segments may be there many times, so that they have more bytes than there is memory. */
  private static long sum(String name, long[] sizes) {
    long total = 0;
    for (long size : sizes) {
      total = countable(name, total + size);
    }
    return total;
  }

  private static long countable(String name, long bytes) {
    if (bytes < 0 || bytes > MOST_BYTES) {
      throw new IndexOutOfBoundsException(
          "%s: more bytes than %d (expected: those of a buffer)".formatted(name, MOST_BYTES));
    }
    return bytes;
  }

  /** One segment; {@code written} if bytes go there. */
  public static HostParts of(String name, MemorySegment segment, boolean written) {
    return new HostParts(name, segment, written);
  }

  /**
   * Segments in their order.
   *
   * @throws NullPointerException if one is null
   * @throws IndexOutOfBoundsException if they have more bytes than any buffer
   * @throws IllegalArgumentException if one is to be written and read-only
   * @throws IllegalStateException if the arena of one is closed
   * @throws WrongThreadException if one is another thread's
   */
  public static HostParts of(String name, List<MemorySegment> parts, boolean written) {
    return new HostParts(name, parts instanceof ArrayRows ? parts : List.copyOf(parts), written);
  }

  private void check(MemorySegment part, int index, boolean written) {
    if (written && part.isReadOnly()) {
      throw new IllegalArgumentException("%s: %s is read-only".formatted(name(index), part));
    }
    if (!part.scope().isAlive()) {
      throw new IllegalStateException("%s: the arena of %s is closed".formatted(name(index), part));
    }
    if (!part.isAccessibleBy(Thread.currentThread())) {
      throw new WrongThreadException(
          "%s: %s is confined to another thread".formatted(name(index), part));
    }
  }

  /** The error of memory whose arena another thread closes while it is copied. */
  public static IllegalStateException closed(String name, MemorySegment memory, Throwable cause) {
    return new IllegalStateException(
        "%s: the arena of %s was closed during the copy".formatted(name, memory), cause);
  }

  private String name(int index) {
    return parts.size() == 1 ? name : "%s[%d]".formatted(name, index);
  }

  private void divide(long[] sizes) {
    int part = 0;
    long begin = 0; // of the part
    long end = sizes.length == 0 ? 0 : sizes[0];
    for (int piece = 0; piece < firstPart.length; piece++) {
      long at = (long) piece * PIECE_BYTES;
      while (at >= end) {
        part++;
        begin = end;
        end += sizes[part];
      }
      firstPart[piece] = part;
      offsetInPart[piece] = at - begin;
    }
  }

  public long byteSize() {
    return byteSize;
  }

  /** How many pieces there are. */
  public int pieces() {
    return Math.toIntExact((byteSize + PIECE_BYTES - 1) / PIECE_BYTES);
  }

  /** The bytes of a piece. */
  public long bytesOf(int piece) {
    return Math.min(PIECE_BYTES, byteSize - (long) piece * PIECE_BYTES);
  }

  /** Whether threads other than this one may access all of it. */
  public boolean isForAllThreads() {
    return isForAllThreads;
  }

  /** Whether there is one segment. */
  public boolean isOne() {
    return parts.size() == 1;
  }

  /** A range of the bytes, if there is one segment; else no bytes. */
  public MemorySegment window(long offset, long bytes) {
    return isOne() ? parts.getFirst().asSlice(offset, bytes) : NOTHING;
  }

  /** Has something done with each segment off the heap. */
  public void forEachNative(Consumer<MemorySegment> action) {
    if (!(parts instanceof ArrayRows rows && rows.areArrays())) {
      for (MemorySegment part : parts) {
        if (part.isNative()) {
          action.accept(part);
        }
      }
    }
  }

  /**
   * Copies a piece from here, or to here, to or from an offset of other memory.
   *
   * @throws IllegalStateException if the arena of a part was closed, or a mapped file has shrunk
   */
  public void copy(int piece, MemorySegment memory, long offset, boolean fromHere) {
    int part = isOne() ? 0 : firstPart[piece];
    long at = isOne() ? (long) piece * PIECE_BYTES : offsetInPart[piece];
    long left = bytesOf(piece);
    long to = offset;
    while (left > 0) {
      MemorySegment next = parts.get(part);
      long bytes = Math.min(left, next.byteSize() - at);
      if (fromHere) {
        copy(next, at, memory, to, bytes, part);
      } else {
        copy(memory, to, next, at, bytes, part);
      }
      left -= bytes;
      to += bytes;
      at = 0;
      part++;
    }
  }

  private void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes, int part) {
    boolean isOfFile = from.isMapped() || to.isMapped();
    try {
      MemorySegment.copy(from, fromOffset, to, toOffset, bytes);
      if (isOfFile) {
        meetSafepoint();
      }
    } catch (IllegalStateException e) { // by the JVM, without a name
      MemorySegment mine = parts.get(part);
      throw mine.scope().isAlive() ? e : closed(name(part), mine, e);
    } catch (InternalError e) {
      if (!isOfFile) {
        throw e;
      }
      throw new IllegalStateException(
          parts.get(part).isMapped()
              ? "%s: the file that %s is mapped from has shrunk, or cannot be read"
                  .formatted(name(part), parts.get(part))
              : "the file that the buffer is mapped from has shrunk, or cannot be read",
          e);
    }
  }

  /**
   * The JVM throws the error of a page that the file does not have any more at the thread's next
   * safepoint, which has to be before this is past: the compiler removes that of a loop that
   * counts.
   */
  private static void meetSafepoint() {
    int left = 2;
    while (left > 0) {
      left -= step;
    }
  }
}
