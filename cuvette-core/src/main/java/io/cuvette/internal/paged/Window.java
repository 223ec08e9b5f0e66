package io.cuvette.internal.paged;

import io.cuvette.BufferDescriptor;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.block.PlainExport;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.lifetime.Reclaim;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.space.Pieces;
import java.util.concurrent.atomic.AtomicReference;
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

  /** What is mapped. */
  public final Pieces pieces;

  private final ExportedPieces exported = new ExportedPieces();

  /** Handles that could not be released, the newest first. */
  private final AtomicReference<@Nullable Handle> handles = new AtomicReference<>();

  /** Held to release what failing calls left behind. */
  private final BargingLock settling = new BargingLock();

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
    this.pieces = new Pieces(address, byteSize, paging.unit());
  }

  /** A handle of memory. There is a place for it before there is a handle: later, heap may lack. */
  private static final class Handle {
    long value;
    @Nullable Handle next;
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
    Reclaim reclaim = new Reclaim(paging.device().session().leaks());
    return reclaim.search(
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
          Window window = null;
          try {
            Face face = faces.make(address, bytes, stream);
            window = new Window(face, paging, calls, address, bytes);
            window.session.children().add(window.end);
            faces.own(face, window);
            return faces.memory(face);
          } catch (OutOfMemoryError e) {
            if (window != null) {
              window.session.children().remove(window.end);
            }
            calls.memAddressFree(address, bytes);
            throw e;
          }
        });
  }

  public Paging paging() {
    return paging;
  }

  /**
   * Maps memory in a range where nothing is mapped. If a call fails, nothing is mapped there.
   *
   * @param largest the most bytes of a piece
   */
  public void map(long from, long bytes, long largest) {
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
    pieces.reserve(from, bytes);
    Handle handle = new Handle();
    try {
      long end = from + bytes;
      for (long at = from; at < end; ) {
        long piece = paging.unit();
        while (piece * 4 <= Math.min(largest, end - at)) {
          piece *= 4;
        }
        mapPiece(at, piece, handle);
        at += piece;
      }
      calls.memSetAccess(
          from, bytes, MemLocationType.DEVICE, paging.accessors(), MemAccessFlags.READ_WRITE);
    } catch (RuntimeException | Error e) {
      pieces.strand(from, bytes);
      Failures.runAfter(e, this::settle);
      throw e;
    }
  }

  private void mapPiece(long at, long bytes, Handle handle) {
    handle.value = calls.memCreate(bytes, paging.properties());
    try {
      calls.memMap(at, bytes, 0, handle.value);
    } catch (RuntimeException | Error e) {
      if (Once.mayBeDone(e)) {
        pieces.add(at, bytes); // with all that was mapped, it is asked for and unmapped
      }
      releaseAfter(e, handle);
      throw e;
    }
    pieces.add(at, bytes);
    release(handle);
  }

  /** Memory goes with its last handle and mapping. */
  private void release(Handle handle) {
    try {
      calls.memRelease(handle.value);
    } catch (RuntimeException | Error e) {
      if (!Once.mayBeDone(e)) {
        keep(handle);
      }
      throw e;
    }
  }

  private void keep(Handle handle) {
    Handle next;
    do {
      next = handles.get();
      handle.next = next;
    } while (!handles.compareAndSet(next, handle));
  }

  private void releaseAfter(Throwable failure, Handle handle) {
    Failures.runAfter(failure, () -> release(handle));
  }

  /** Unmaps whole pieces, whose work is done; whether it did, {@link #isMapped} tells. */
  public void unmap(long from, long bytes) {
    inside(() -> {
      settle();
      unmapNow(from, bytes);
    });
  }

  private void unmapNow(long from, long bytes) {
    exported.drop(from, bytes);
    try {
      calls.memUnmap(from, bytes);
    } catch (RuntimeException e) {
      if (Once.mayBeDone(e)) {
        Failures.runAfter(e, () -> findOut(from, bytes));
      }
      throw e;
    }
    pieces.remove(from, bytes);
  }

  /** After a failure that tells nothing of the call: nothing is mapped any more, or all is. */
  private void findOut(long from, long bytes) {
    if (!paging.isMapped(calls, from)) {
      pieces.remove(from, bytes);
    }
  }

  /**
   * What other processes import the pieces by that hold a part; a user of the part keeps them from
   * being unmapped meanwhile.
   */
  public PageExport export(Memory part) {
    DescriptorCalls system = Descriptors.require("export");
    long start = pieces.startOf(part.address());
    long end = part.address() + part.byteSize();
    return session
        .gate()
        .make(() -> {
          CudaDriver _ = paging.device().context();
          settle();
          PageFiles.Maker files = new PageFiles.Maker();
          try {
            for (long at = start; at < end; at += pieces.sizeAt(at)) {
              long piece = at;
              files.add(exported.of(at, () -> exportPiece(system, piece)), pieces.sizeAt(at));
            }
            return new PageExport(part.address() - start, files.made());
          } catch (RuntimeException | Error e) {
            Failures.runAfter(e, files::close);
            throw e;
          }
        });
  }

  /** No child process inherits the descriptor, whatever the driver does. */
  private PoolHandle exportPiece(DescriptorCalls system, long at) {
    Handle handle = new Handle();
    handle.value = calls.memRetainAllocationHandle(at);
    int descriptor;
    try {
      descriptor = calls.memExportToShareableHandle(handle.value);
    } catch (RuntimeException | Error e) {
      releaseAfter(e, handle);
      throw e;
    }
    try {
      release(handle);
      return PoolHandle.own(system, system.duplicate(descriptor), null);
    } finally {
      system.close(descriptor);
    }
  }

  /** Whether a range has pieces that can be used. */
  public boolean isMapped(long from, long bytes) {
    return pieces.next(from, from + bytes) != Pieces.NONE;
  }

  /** Nobody uses the pieces of a range: they are unmapped with the next step. */
  public void strand(long from, long bytes) {
    pieces.strand(from, bytes);
  }

  /** Makes that step after a failure; what fails of it waits for later. */
  public void settleAfter(Throwable failure) {
    Failures.runAfter(failure, () -> inside(this::settle));
  }

  /** Releases what failing calls left behind. */
  public void settleLeft() {
    if (handles.get() != null || pieces.hasStuck()) {
      inside(this::settle);
    }
  }

  /** Releases what failing calls left behind; what fails again waits for later. */
  private void settle() {
    if (handles.get() != null || pieces.hasStuck()) {
      settling.lock();
      try {
        Failures.rethrow(unmapStuck(releaseHandles()));
      } finally {
        settling.unlock();
      }
    }
  }

  private @Nullable Throwable releaseHandles() {
    Throwable failure = null;
    Handle handle = handles.getAndSet(null);
    while (handle != null) {
      Handle next = handle.next;
      try {
        release(handle);
      } catch (RuntimeException | Error e) {
        failure = Failures.joined(failure, e);
      }
      handle = next;
    }
    return failure;
  }

  private @Nullable Throwable unmapStuck(@Nullable Throwable before) {
    Throwable failure = before;
    long at = pieces.hasStuck() ? pieces.nextStuck(address) : Pieces.NONE;
    while (at != Pieces.NONE) {
      long bytes = pieces.sizeAt(at);
      try {
        if (!isGone(at)) {
          calls.memUnmap(at, bytes);
        }
        pieces.removeStuck(at);
      } catch (RuntimeException | Error e) {
        failure = Failures.joined(failure, e);
      }
      at = pieces.nextStuck(at + bytes);
    }
    return failure;
  }

  /** Whether surely nothing is mapped; false if that cannot be asked: unmapping tells then. */
  private boolean isGone(long at) {
    try {
      return !paging.isMapped(calls, at);
    } catch (RuntimeException | Error e) {
      return false;
    }
  }

  /** Gives all back at the end of the pool; goes on where it failed if it did. */
  public void free() {
    session.gate().run(() -> freeOnce(false));
  }

  public boolean isFreed() {
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
    failures.run(this::unmapAll);
    boolean isEmpty = !isMapped(address, byteSize) && !pieces.hasStuck();
    if (isLast || isEmpty) {
      failures.run(() -> addresses.free(() -> calls.memAddressFree(address, byteSize)));
    }
    failures.throwFirst();
  }

  /** Goes on after a failure. */
  private void unmapAll() {
    Failures failures = new Failures();
    long end = address + byteSize;
    for (long at = pieces.next(address, end); at != Pieces.NONE; ) {
      long piece = at;
      long bytes = pieces.sizeAt(at);
      failures.run(() -> unmapNow(piece, bytes));
      at = pieces.next(at + bytes, end);
    }
    failures.throwFirst();
  }

  @Override
  public boolean deniesAccess(Device other) {
    return !paging.allows(other);
  }

  @Override
  public BufferDescriptor descriptor(Memory part) {
    throw PlainExport.cannot(
        part,
        paging.isExportable()
            ? "its pages are exported by ElasticMemoryPool.export"
            : "its pool was made without ElasticPoolOptions.exportable");
  }

  @Override
  public long blockBytes() {
    return pieces.mappedBytes();
  }

  @Override
  public String describe() {
    return "addresses of a pool at 0x%x".formatted(address);
  }

  /** It ends with its pool alone. */
  @Override
  public void giveBack() {}
}
