package io.cuvette.internal.elastic;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.lifetime.Reclaim;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.Paging;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.NavigableMap;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The addresses of a pool on one device, of which all its blocks are parts, and the memory that is
 * mapped there in pieces. Memory that a failing call of the driver left behind is released with a
 * later step. Thread-safe, for threads that map and unmap different addresses.
 */
public final class Window extends Block {
  private final Paging paging;
  private final VirtualCalls calls;
  private final Session session;
  private final long address;
  private final long byteSize;

  /** The pieces that are mapped and can be used: their sizes by address. */
  private final NavigableMap<Long, Long> pieces = new ConcurrentSkipListMap<>();

  private final AtomicLong mappedBytes = new AtomicLong();

  /** Pieces that nobody can use, but that could not be unmapped either. */
  private final NavigableMap<Long, Long> stuck = new ConcurrentSkipListMap<>();

  /** Handles that could not be released. */
  private final Queue<Long> handles = new ConcurrentLinkedQueue<>();

  private final Runnable end = this::freeAtEnd;
  private final Once freed = new Once();
  private final Once addresses = new Once();

  private Window(Face face, Paging paging, VirtualCalls calls, long address, long byteSize) {
    super(face, null, null, null);
    this.paging = paging;
    this.calls = calls;
    this.session = paging.device().session();
    this.address = address;
    this.byteSize = byteSize;
  }

  /**
   * Reserves addresses, and no memory.
   *
   * @param faces makes what stands for all of them
   * @param bytes a multiple of the unit
   */
  public static Memory reserve(Faces faces, Paging paging, long bytes, OpenStream stream) {
    try {
      return reserveNow(faces, paging, bytes, stream);
    } catch (CudaException e) {
      Memory found =
          e.status() == CudaStatus.OUT_OF_MEMORY ? search(faces, paging, bytes, stream) : null;
      if (found == null) {
        throw e;
      }
      return found;
    }
  }

  /** Pools that were forgotten may have the addresses. */
  private static @Nullable Memory search(
      Faces faces, Paging paging, long bytes, OpenStream stream) {
    return Reclaim.search(
        paging.device().session().leaks(),
        stream.state.streams.relief()::hasForgottenPools,
        () -> {
          try {
            return reserveNow(faces, paging, bytes, stream);
          } catch (CudaException e) {
            return null;
          }
        });
  }

  private static Memory reserveNow(Faces faces, Paging paging, long bytes, OpenStream stream) {
    return paging
        .device()
        .session()
        .gate()
        .make(() -> {
          VirtualCalls calls = paging.device().context().virtual();
          long address = calls.memAddressReserve(bytes, paging.unit(), 0);
          try {
            Face face = faces.make(address, bytes, stream);
            Window window = new Window(face, paging, calls, address, bytes);
            window.session.children().add(window.end);
            faces.own(face, window);
            return faces.memory(face);
          } catch (OutOfMemoryError e) {
            calls.memAddressFree(address, bytes);
            throw e;
          }
        });
  }

  Paging paging() {
    return paging;
  }

  /** The bytes that are mapped and can be used. */
  long mappedBytes() {
    return mappedBytes.get();
  }

  /** The pieces of a range: their sizes by address. */
  NavigableMap<Long, Long> pieces(long from, long bytes) {
    return pieces.subMap(from, true, from + bytes, false);
  }

  /**
   * Maps memory in a range where nothing is mapped. If a call fails, nothing is mapped there.
   *
   * @param largest the most bytes of a piece
   */
  void map(long from, long bytes, long largest) {
    inside(() -> {
      CudaDriver _ = paging.device().context();
      mapNow(from, bytes, largest);
    });
  }

  /**
   * Runs calls of the driver; who ends the Cuda may unmap what a forgotten pool has.
   *
   * @throws IllegalStateException on other threads if the Cuda ends, which then does that itself
   */
  private void inside(Runnable step) {
    session
        .gate()
        .<@Nullable Void>make(() -> {
          step.run();
          return null;
        });
  }

  private void mapNow(long from, long bytes, long largest) {
    settle();
    NavigableMap<Long, Long> made = new TreeMap<>();
    try {
      long end = from + bytes;
      for (long at = from; at < end; ) {
        long piece = paging.unit();
        while (piece * 4 <= Math.min(largest, end - at)) {
          piece *= 4;
        }
        mapPiece(at, piece, made);
        at += piece;
      }
      calls.memSetAccess(
          from, bytes, MemLocationType.DEVICE, paging.accessors(), MemAccessFlags.READ_WRITE);
      pieces.putAll(made);
      mappedBytes.addAndGet(bytes);
    } catch (RuntimeException | Error e) {
      made.forEach((at, piece) -> Failures.closeAfter(e, () -> unmapPiece(at, piece)));
      throw e;
    }
  }

  private void mapPiece(long at, long bytes, NavigableMap<Long, Long> made) {
    long handle = calls.memCreate(bytes, paging.properties());
    made.put(at, bytes); // first: there may be no heap for it later
    try {
      calls.memMap(at, bytes, 0, handle);
    } catch (RuntimeException e) {
      made.remove(at);
      if (Once.mayBeDone(e)) {
        Failures.closeAfter(e, () -> unmapIfMapped(at, bytes));
      }
      Failures.closeAfter(e, () -> release(handle));
      throw e;
    }
    release(handle);
  }

  /** Memory goes with its last handle and mapping. */
  private void release(long handle) {
    try {
      Once.free(() -> calls.memRelease(handle), () -> {});
    } catch (RuntimeException e) {
      if (!Once.mayBeDone(e)) {
        handles.add(handle);
      }
      throw e;
    }
  }

  /** Unmaps whole pieces, whose work is done; whether it did, {@link #isMapped} tells. */
  void unmap(long from, long bytes) {
    inside(() -> {
      settle();
      unmapNow(from, bytes);
    });
  }

  private void unmapNow(long from, long bytes) {
    try {
      calls.memUnmap(from, bytes);
    } catch (RuntimeException e) {
      if (Once.mayBeDone(e)) {
        Failures.closeAfter(e, () -> findOut(from, bytes));
      }
      throw e;
    }
    forget(from, bytes);
  }

  /** After a failure that tells nothing of the call: nothing is mapped any more, or all is. */
  private void findOut(long from, long bytes) {
    if (!isMapped(from)) {
      forget(from, bytes);
    }
  }

  private void forget(long from, long bytes) {
    pieces(from, bytes).clear();
    mappedBytes.addAndGet(-bytes);
  }

  /** Whether a range has pieces that can be used. */
  boolean isMapped(long from, long bytes) {
    return !pieces(from, bytes).isEmpty();
  }

  /** Unmaps pieces that nobody has used; what fails waits for later. */
  void discard(long from, long bytes) {
    if (isMapped(from, bytes)) {
      inside(() -> {
        Failures failures = new Failures();
        pieces(from, bytes).forEach((at, piece) -> failures.run(() -> discardPiece(at, piece)));
        failures.throwFirst();
      });
    }
  }

  private void discardPiece(long at, long bytes) {
    forget(at, bytes);
    unmapPiece(at, bytes);
  }

  /** Releases what failing calls left behind. */
  private void settle() {
    Failures failures = new Failures();
    for (Long handle = handles.poll(); handle != null; handle = handles.poll()) {
      long left = handle;
      failures.run(() -> release(left));
      if (handles.contains(left)) {
        break;
      }
    }
    if (!stuck.isEmpty()) {
      stuck.forEach((at, piece) -> failures.run(() -> unmapStuck(at, piece)));
    }
    failures.throwFirst();
  }

  private void unmapStuck(long at, long bytes) {
    if (stuck.remove(at, bytes)) { // else another thread does it
      unmapPiece(at, bytes);
    }
  }

  /** Unmaps a piece that nobody has used; if that fails, it waits for later. */
  private void unmapPiece(long at, long bytes) {
    try {
      calls.memUnmap(at, bytes);
    } catch (RuntimeException e) {
      stuck.put(at, bytes);
      if (Once.mayBeDone(e)) {
        Failures.closeAfter(e, () -> forgetIfUnmapped(at));
      }
      throw e;
    }
  }

  private void forgetIfUnmapped(long at) {
    if (!isMapped(at)) {
      stuck.remove(at);
    }
  }

  private void unmapIfMapped(long at, long bytes) {
    if (isMapped(at)) {
      unmapPiece(at, bytes);
    }
  }

  private boolean isMapped(long at) {
    try {
      int _ = calls.memGetAccess(at, MemLocationType.DEVICE, paging.device().id());
      return true;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
      return false;
    }
  }

  /** Gives all back at the end of the pool; goes on where it failed if it did. */
  void free() {
    session.gate().run(() -> freeOnce(false));
  }

  boolean isFreed() {
    return freed.isDone();
  }

  private void freeAtEnd() {
    freeOnce(true);
  }

  private void freeOnce(boolean isLast) {
    freed.run(() -> freeNow(isLast));
    session.children().remove(end);
  }

  /** The last time, nothing is left to another. */
  private void freeNow(boolean isLast) {
    Failures failures = new Failures();
    failures.run(this::settle);
    pieces.forEach((at, piece) -> failures.run(() -> unmapNow(at, piece)));
    if (isLast || (pieces.isEmpty() && stuck.isEmpty())) {
      failures.run(() -> addresses.free(() -> calls.memAddressFree(address, byteSize)));
    }
    failures.throwFirst();
  }

  @Override
  public boolean deniesAccess(Device other) {
    return !paging.allows(other);
  }

  @Override
  public long blockBytes() {
    return mappedBytes();
  }

  @Override
  public String describe() {
    return "addresses of a pool at 0x%x".formatted(address);
  }

  /** It ends with its pool alone. */
  @Override
  public void giveBack() {}
}
