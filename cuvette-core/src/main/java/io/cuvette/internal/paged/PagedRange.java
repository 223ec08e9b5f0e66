package io.cuvette.internal.paged;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.session.PeerHandles;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Reserved addresses with memory mapped at their start, without a gap, new or of another process.
 * Every step leaves it in a state from which the next one can go on, whichever call of the driver
 * fails.
 *
 * <pre>
 *   address            open               mapped                    end
 *   | memory, accessible | memory, no access | nothing               |
 * </pre>
 *
 * <p>The handle of memory is released once it is mapped: what is mapped stays. Used by one thread
 * at a time.
 */
public final class PagedRange {
  /** The largest pieces: copies of memory in them are as fast as of plain memory. */
  private static final long LARGEST = 32L << 20;

  /** A piece is at most this part of what there is with it: so much is in vain at most. */
  private static final int PART = 16;

  private final Paging paging;
  private VirtualCalls calls;
  private final long address;
  private final long byteSize;

  /** The sizes of the pieces that are mapped, in order. */
  private final List<Long> pieces = new ArrayList<>();

  /** A handle that is not released yet; 0 for none. */
  private long handle;

  private volatile long mapped;
  private long open;
  private boolean isFreed;

  /** Whether a call failed that may have unmapped something. */
  private boolean isInDoubt;

  private PagedRange(Paging paging, VirtualCalls calls, long address, long byteSize) {
    this.paging = paging;
    this.calls = calls;
    this.address = address;
    this.byteSize = byteSize;
  }

  /** Reserves addresses for at least so many bytes, and no memory. */
  public static PagedRange reserve(Paging paging, long bytes) {
    VirtualCalls calls = paging.device().context().virtual();
    long all = paging.up(bytes);
    long address = calls.memAddressReserve(all, 0, 0);
    try {
      return new PagedRange(paging, calls, address, all);
    } catch (OutOfMemoryError e) {
      calls.memAddressFree(address, all);
      throw e;
    }
  }

  public long address() {
    return address;
  }

  /** How its memory is mapped. */
  public Paging paging() {
    return paging;
  }

  /** The bytes of memory that are mapped now. */
  public long mappedBytes() {
    return mapped;
  }

  /** The bytes that some bytes take in whole pieces, if the range grows to them now. */
  public long pieceBytes(long bytes) {
    long step = step(bytes);
    return Math.min(byteSize, Math.max(mapped, (bytes + step - 1) / step * step));
  }

  private long step(long bytes) {
    long step = paging.unit();
    while (step * 4 <= LARGEST && step * 4 <= bytes / PART) {
      step *= 4;
    }
    return step;
  }

  /**
   * Maps memory until some bytes are accessible. If a call fails, what was mapped for this is
   * unmapped, now or with the next step.
   */
  public void growTo(long bytes) {
    long before = mapped;
    if (bytes <= open) {
      return;
    }
    try {
      releaseHandle();
      long all = pieceBytes(bytes);
      while (mapped < all) {
        long piece = Math.min(all - mapped, Math.max(paging.unit(), LARGEST));
        map(piece, () -> handle = calls.memCreate(piece, paging.properties()));
      }
      giveAccess();
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, () -> shrinkTo(before));
      throw e;
    }
  }

  private void giveAccess() {
    calls.memSetAccess(
        address + open,
        mapped - open,
        MemLocationType.DEVICE,
        paging.accessors(),
        MemAccessFlags.READ_WRITE);
    open = mapped;
  }

  /**
   * Maps memory of another process, which fills the range. If a call fails, {@link #free} follows.
   *
   * @param checked checks the properties of each piece
   */
  public void mapAll(PageFiles files, Consumer<AllocationProperties> checked) {
    CudaDriver driver = paging.device().session().driver();
    for (int i = 0; i < files.count(); i++) {
      PoolHandle file = files.handle(i);
      map(
          files.bytes(i),
          () -> {
            file.use(descriptor -> handle = imported(driver, descriptor));
            checked.accept(calls.memGetAllocationPropertiesFromHandle(handle));
          });
    }
    giveAccess();
  }

  private long imported(CudaDriver driver, int descriptor) {
    return calls.memImportFromShareableHandle(PeerHandles.checkedMemory(driver, descriptor));
  }

  private void map(long bytes, Runnable memory) {
    pieces.add(bytes); // first: there may be no heap for it later
    boolean isMapped = false;
    try {
      memory.run();
      mapHandle(bytes);
      isMapped = true;
    } finally {
      if (!isMapped) {
        pieces.removeLast();
      }
    }
    long all = mapped + bytes;
    mapped = all;
    releaseHandle();
  }

  /** Nobody else maps anything here: what may be mapped is unmapped. */
  private void mapHandle(long bytes) {
    try {
      calls.memMap(address + mapped, bytes, 0, handle);
    } catch (RuntimeException e) {
      if (Once.mayBeDone(e)) {
        Failures.runAfter(e, () -> unmapIfMapped(mapped, bytes));
      }
      throw e;
    }
  }

  private void unmapIfMapped(long offset, long bytes) {
    if (paging.isMapped(calls, address + offset)) {
      calls.memUnmap(address + offset, bytes);
    }
  }

  private void releaseHandle() {
    long left = handle;
    if (left != 0) {
      Once.free(() -> calls.memRelease(left), () -> handle = 0);
    }
  }

  /** Unmaps the pieces that lie behind some bytes; their work is done. */
  public void shrinkTo(long bytes) {
    Failures failures = new Failures();
    failures.run(this::releaseHandle);
    int kept = pieces.size();
    long end = mapped;
    while (kept > 0 && end - pieces.get(kept - 1) >= bytes) {
      kept--;
      end -= pieces.get(kept);
    }
    if (end < mapped) {
      int rest = kept;
      long from = end;
      failures.run(() -> unmap(rest, from));
    }
    failures.throwFirst();
  }

  private void unmap(int rest, long end) {
    if (isInDoubt) {
      while (pieces.size() > rest) {
        long last = pieces.getLast();
        unmapIfMapped(mapped - last, last);
        unmapped(pieces.size() - 1, mapped - last);
      }
      return;
    }
    try {
      calls.memUnmap(address + end, mapped - end);
    } catch (RuntimeException e) {
      isInDoubt |= Once.mayBeDone(e);
      throw e;
    }
    unmapped(rest, end);
  }

  private void unmapped(int rest, long end) {
    pieces.subList(rest, pieces.size()).clear();
    mapped = end;
    open = Math.min(open, end);
  }

  /** Gives all back by a driver whose Cuda is open: that which mapped it may be closed by now. */
  public void free(VirtualCalls by) {
    calls = by;
    free();
  }

  /** Gives all back; goes on where it failed if it did. */
  public void free() {
    free(false);
  }

  /** The same for the last time: nothing is left to another, whatever fails. */
  public void freeAtEnd() {
    free(true);
  }

  private void free(boolean isLast) {
    Failures failures = new Failures();
    failures.run(() -> shrinkTo(0));
    if (!isFreed && (isLast || mapped == 0)) {
      failures.run(
          () -> Once.free(() -> calls.memAddressFree(address, byteSize), () -> isFreed = true));
    }
    failures.throwFirst();
  }
}
