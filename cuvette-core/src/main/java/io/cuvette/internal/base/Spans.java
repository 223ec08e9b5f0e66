package io.cuvette.internal.base;

import java.util.TreeSet;

/** The addresses of what a pool holds from upstream; no two ranges overlap. Thread-safe. */
public final class Spans {
  private final BargingLock lock = new BargingLock();
  private final TreeSet<Span> ordered = new TreeSet<>();

  /** The addresses from a start to before an end. */
  public record Span(long start, long end) implements Comparable<Span> {
    public long bytes() {
      return end - start;
    }

    @Override
    public int compareTo(Span other) {
      return Long.compareUnsigned(start, other.start);
    }
  }

  /**
   * Adds the addresses of memory that upstream gave.
   *
   * @param bytes what the pool uses of it
   * @param what the memory, for a message
   * @throws IllegalStateException if some of it is there already: it would be handed out twice
   */
  public Span add(long address, long bytes, Object what) {
    Span span = new Span(address, address + bytes);
    lock.lock();
    try {
      Span below = ordered.lower(new Span(span.end, span.end));
      if (below != null && Long.compareUnsigned(below.end, span.start) > 0) {
        throw new IllegalStateException(
            ("upstream returned %s again, or a part of it: the pool holds 0x%x to 0x%x"
                    + " (expected: memory that the pool does not hold)")
                .formatted(what, below.start, below.end));
      }
      ordered.add(span);
      return span;
    } finally {
      lock.unlock();
    }
  }

  /** Removes what was added. Allocates nothing in the Java heap. */
  public void remove(Span span) {
    lock.lock();
    try {
      ordered.remove(span);
    } finally {
      lock.unlock();
    }
  }

  /** The bytes of all. */
  public long bytes() {
    lock.lock();
    try {
      return ordered.stream().mapToLong(Span::bytes).sum();
    } finally {
      lock.unlock();
    }
  }

  public void clear() {
    lock.lock();
    try {
      ordered.clear();
    } finally {
      lock.unlock();
    }
  }
}
