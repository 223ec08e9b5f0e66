package io.cuvette.sim.internal.memory;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A copy to or from pageable memory, which the driver moves in pieces through memory of its own:
 * the last piece of a copy to the device is on its way when the call returns. Guarded by the
 * driver's lock.
 */
public final class PageableCopy {
  private static final long PIECE_BYTES = 4L << 20;

  private final SimPlace to;
  private final SimPlace from;
  private final long bytes;
  private @Nullable SimPlace piece;
  private boolean staged;

  public PageableCopy(SimPlace to, SimPlace from, long bytes) {
    this.to = to;
    this.from = from;
    this.bytes = bytes;
  }

  /** Whether a block is memory that the driver did not make. */
  public static boolean isPageable(SimBlock block) {
    return block instanceof HostBlock host && host.kind == HostBlock.Kind.PAGEABLE;
  }

  /** Moves all but the last piece to the device, or all from it. */
  public void stage() {
    long last = isPageable(from.block()) ? Math.min(bytes, PIECE_BYTES) : 0;
    to.copyFrom(from, bytes - last);
    if (last > 0) {
      piece = staged(from, bytes - last, last);
    }
  }

  /** A copy of bytes of pageable memory. */
  public static SimPlace staged(SimPlace from, long offset, long bytes) {
    HostBlock source = (HostBlock) from.block();
    MemorySegment copy = MemorySegment.ofArray(new byte[(int) bytes]);
    copy.copyFrom(source.segment.asSlice(from.offset() + offset, bytes));
    return new SimPlace(HostBlock.pageable(source.device, copy), 0);
  }

  /** No more is staged, whether it came to that or not. */
  public void end() {
    staged = true;
  }

  public boolean isStaged() {
    return staged;
  }

  public boolean isInFlight() {
    return piece != null;
  }

  /** Moves the last piece, in stream order. */
  public void land() {
    SimPlace source = piece;
    if (source != null) {
      long last = source.block().byteSize;
      new SimPlace(to.block(), to.offset() + bytes - last).copyFrom(source, last);
    }
  }
}
