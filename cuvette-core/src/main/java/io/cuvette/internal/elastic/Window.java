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

  /** Pieces that cannot be used, but could not be unmapped either. */
  private final NavigableMap<Long, Long> stuck = new ConcurrentSkipListMap<>();

  /** Handles that could not be released. */
  private final Queue<Long> handles = new ConcurrentLinkedQueue<>();

  /** Whether a call failed that may have unmapped all the same. */
  private volatile boolean isInDoubt;

  private final Runnable end = this::freeOnce;
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
    inside(() -> mapNow(from, bytes, largest));
  }

  /**
   * Runs calls of the driver, which need the device's context.
   *
   * @throws IllegalStateException if the Cuda ends, which then does that itself
   */
  private void inside(Runnable step) {
    CudaDriver _ =
        session
            .gate()
            .make(() -> {
              CudaDriver driver = paging.device().context();
              step.run();
              return driver;
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
      stuck.putAll(made);
      Failures.closeAfter(e, () -> settle());
      throw e;
    }
  }

  private void mapPiece(long at, long bytes, NavigableMap<Long, Long> made) {
    long handle = calls.memCreate(bytes, paging.properties());
    made.put(at, bytes); // first: there may be no heap for it later
    try {
      calls.memMap(at, bytes, 0, handle);
    } catch (RuntimeException e) {
      if (!Once.mayBeDone(e)) {
        made.remove(at);
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

  /**
   * Unmaps whole pieces, whose work is done.
   *
   * @throws CudaException if the driver reports an error; all is still mapped then
   */
  void unmap(long from, long bytes) {
    inside(() -> unmapNow(from, bytes));
  }

  /** Unmaps what nobody has used, of which some may not be mapped; what fails waits for later. */
  void discard(long from, long bytes) {
    NavigableMap<Long, Long> all = pieces(from, bytes);
    if (!all.isEmpty()) {
      long unused = all.values().stream().mapToLong(Long::longValue).sum();
      stuck.putAll(all);
      all.clear();
      mappedBytes.addAndGet(-unused);
      inside(this::settle);
    }
  }

  private void unmapNow(long from, long bytes) {
    settle();
    try {
      calls.memUnmap(from, bytes);
    } catch (RuntimeException e) {
      isInDoubt |= Once.mayBeDone(e);
      throw e;
    }
    pieces(from, bytes).clear();
    mappedBytes.addAndGet(-bytes);
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
    if (!stuck.remove(at, bytes)) {
      return; // another thread does it
    }
    boolean done = false;
    try {
      if (isMapped(at)) {
        calls.memUnmap(at, bytes);
      }
      done = true;
    } finally {
      if (!done) {
        stuck.put(at, bytes);
      }
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
    session.gate().run(this::freeOnce);
  }

  private void freeOnce() {
    freed.run(this::freeNow);
    session.children().remove(end);
  }

  private void freeNow() {
    Failures failures = new Failures();
    failures.run(() -> settle());
    pieces.forEach((at, piece) -> failures.run(() -> unmapLast(at, piece)));
    failures.run(() -> addresses.free(() -> calls.memAddressFree(address, byteSize)));
    failures.throwFirst();
  }

  private void unmapLast(long at, long bytes) {
    if (!isInDoubt || isMapped(at)) {
      calls.memUnmap(at, bytes);
    }
    pieces.remove(at);
    mappedBytes.addAndGet(-bytes);
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
