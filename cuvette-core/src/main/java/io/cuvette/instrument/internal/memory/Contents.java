package io.cuvette.instrument.internal.memory;

/**
 * Which bytes of a block of device memory work was queued for that writes them, or others may have
 * written. Not thread-safe.
 */
public final class Contents {
  private final RangeMap<Boolean> written = new RangeMap<>();

  /** What others may write at any time, also once it has another owner. */
  private final RangeMap<Boolean> shared = new RangeMap<>();

  void write(long address, long bytes) {
    written.set(address, bytes, true);
  }

  /** Others can write the memory. */
  void share(long address, long bytes) {
    shared.set(address, bytes, true);
    write(address, bytes);
  }

  /** The memory gets another owner. */
  void forget(long address, long bytes) {
    written.clear(address, bytes);
    shared.visit(address, bytes, (at, count, _) -> write(at, count));
  }

  /** Other memory is there. */
  void replace(long address, long bytes) {
    shared.clear(address, bytes);
    written.clear(address, bytes);
  }

  /** How many bytes of a range were never written. */
  long missing(long address, long bytes) {
    long[] left = {bytes};
    written.visit(address, bytes, (_, count, _) -> left[0] -= count);
    return left[0];
  }

  /** Has a range be as what is copied there: what was not written is not written there either. */
  void copy(long address, Contents source, long from, long bytes) {
    if (source.missing(from, bytes) == 0) {
      write(address, bytes);
      return;
    }
    RangeMap<Boolean> copied = new RangeMap<>();
    source.written.visit(from, bytes, (at, count, _) -> copied.set(at, count, true));
    forget(address, bytes);
    copied.visit(from, bytes, (at, count, _) -> write(address + at - from, count));
  }
}
