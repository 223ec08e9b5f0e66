package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MemHandleType;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.block.PlainExport;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.devicepool.DevicePool;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.elastic.ElasticDevicePool;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.PageExport;
import io.cuvette.internal.paged.Paging;
import io.cuvette.internal.paged.Window;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.streamcache.CachedBlock;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Keeps freed device memory for reuse like a {@link MemoryPool}, but wastes little of it: all
 * blocks of a device are in one range of addresses, and memory is mapped there where blocks are
 * (cuMemMap). A block that no cached memory fits is put where the fewest new pages are needed, and
 * pages come from where they lie free before much more is held than was ever in use at once.
 *
 * <p>Memory is given out again in order of the stream that freed it at once, and to others once
 * that stream is idle. A pool with {@link ElasticPoolOptions#exportable} can be shared with other
 * processes, buffer by buffer: see {@link #export}. Devices without virtual memory management need
 * a {@link MemoryPool}.
 *
 * <p>Methods without a device are about the current device of the thread. Thread-safe; freeing
 * never waits.
 */
public final class ElasticMemoryPool implements MemoryResource, AutoCloseable {
  /** Addresses, as a multiple of the device's memory: for small blocks, and for all. */
  private static final int SMALL = 1;

  private static final int ALL = 4;

  private final Cuda cuda;
  private final ElasticPoolOptions options;
  private final MemoryPoolCore core;

  /**
   * A pool with {@link ElasticPoolOptions#DEFAULTS}.
   *
   * @param cuda the Cuda
   * @throws UnsupportedOperationException if the current device has no virtual memory management
   */
  public ElasticMemoryPool(Cuda cuda) {
    this(cuda, ElasticPoolOptions.DEFAULTS);
  }

  /**
   * Creates a pool. It holds no memory before the first allocation.
   *
   * @param cuda the Cuda
   * @param options the options
   * @throws UnsupportedOperationException if the current device has no virtual memory management,
   *     or the pool is to be exportable where descriptors cannot be passed or made
   * @throws IllegalArgumentException if a peer is of another Cuda or cannot access the device
   */
  public ElasticMemoryPool(Cuda cuda, ElasticPoolOptions options) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(options, "options");
    this.cuda = cuda;
    cuda.checkOpen();
    cuda.session().leaks().drain();
    this.options = options;
    List<Integer> peers = options.peers().stream().map(peer -> id(cuda, peer)).toList();
    if (options.exportable()) {
      DescriptorCalls _ = Descriptors.require("exportable");
    }
    Addresses addresses = new Addresses(peers, options.exportable());
    Paging _ = addresses.paging(CudaDevice.coreOf(cuda.currentDevice()));
    this.core = core(this, cuda, options, addresses);
  }

  private static int id(Cuda cuda, CudaDevice peer) {
    if (peer.cuda() != cuda) {
      throw new IllegalArgumentException("peers: %s of another Cuda".formatted(peer));
    }
    return peer.id();
  }

  /** What does the work for one object of the user. */
  private static MemoryPoolCore core(
      Object of, Cuda cuda, ElasticPoolOptions options, Addresses addresses) {
    long threshold = options.releaseThresholdBytes();
    return new MemoryPoolCore(
        of,
        "ElasticMemoryPool",
        cuda.engine().streams(),
        addresses,
        options.limit(),
        (pool, device, limit) -> make(pool, device, limit, cuda, threshold),
        BufferKind.DEVICE);
  }

  private static DevicePool make(
      MemoryPoolCore pool, Device device, MemoryLimit limit, Cuda cuda, long threshold) {
    long bytes = device.totalBytes();
    long memory = Math.ceilDiv(bytes, Addresses.STEP) * Addresses.STEP;
    OpenStream stream = cuda.device(device.id()).nullStream().core();
    Memory all = pool.upstream().ask(memory * ALL, stream, device);
    try {
      return new ElasticDevicePool(pool, device, limit, all, memory * SMALL, bytes, threshold);
    } catch (OutOfMemoryError e) {
      ((Window) all.block()).free();
      throw e;
    }
  }

  /** Reserves the addresses of a pool. */
  private record Addresses(List<Integer> peers, boolean exportable) implements ChunkSource {
    /** A multiple of all pages. */
    private static final long STEP = 1L << 30;

    @Override
    public @Nullable Memory allocate(long bytes, OpenStream stream) {
      return Window.reserve(BufferKind.DEVICE, paging(stream.on()), bytes, stream);
    }

    Paging paging(Device device) {
      int types = exportable ? MemHandleType.FILE_DESCRIPTOR : MemHandleType.NONE;
      return Paging.of(device, peers, types);
    }

    @Override
    public String toString() {
      return "virtual memory";
    }
  }

  private ElasticDevicePool of(CudaDevice device) {
    return (ElasticDevicePool) core.of(CudaDevice.coreOf(device));
  }

  /** {@return the options that the pool was created with} */
  public ElasticPoolOptions options() {
    return options;
  }

  /**
   * Allocates a block in order of the current stream, on its device.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException if there is not enough memory, after everything was tried
   * @throws IllegalStateException if the pool is closed
   */
  public Buffer allocate(long bytes) {
    return allocate(bytes, cuda.currentStream());
  }

  /**
   * Allocates a block in order of a stream, on its device.
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory, which no statistics
   *     count
   * @param stream the stream
   * @return the buffer
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException after everything was tried, with the numbers that show why
   * @throws UnsupportedOperationException if the device has no virtual memory management
   * @throws IllegalStateException if the pool or the stream is closed, or if this is called inside
   *     a hook of this pool; to grow it, also inside a pressure listener of it
   */
  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    try {
      return BufferKind.buffer(core.allocate(bytes, stream.core()));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Exports a buffer of this pool, or a part of one: the pages that hold it, whole and with what
   * else is in them (cuMemExportToShareableHandle). Keep the buffer open until the importers have
   * closed theirs: the pool gives the memory of a buffer that is closed to the next one, and
   * importers then read and write that. Pages that the pool releases while importers use them stay
   * theirs.
   *
   * @param buffer a buffer of this pool, >= 1 bytes
   * @return what imports it, which the caller closes once it is sent
   * @throws IllegalStateException if the pool is not exportable, or the buffer is closed or empty
   * @throws IllegalArgumentException if the buffer is not of this pool, or has more than {@link
   *     PageHandles#MOST_PAGES} pages
   * @throws CudaException if the driver reports an error
   */
  public PageHandles export(Buffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    if (!options.exportable()) {
      throw new IllegalStateException(
          this + " was made for this process alone (expected: ElasticPoolOptions.exportable)");
    }
    BufferBase part = (BufferBase) buffer;
    part.checkOpen();
    if (part.byteSize() == 0) {
      throw PlainExport.cannot(part.memory(), "an empty buffer has no memory");
    }
    if (!(part.block() instanceof CachedBlock block)
        || !(block.arena.of instanceof DevicePool of)
        || of.pool != core) {
      throw new IllegalArgumentException("%s is not of %s".formatted(buffer, this));
    }
    Memory memory = part.memory();
    memory.hold();
    try {
      Device device = memory.on();
      UUID process = device.session().process();
      PageExport pages = ((Window) block.chunk.block()).export(memory);
      try {
        return PageHandles.of(pages, part.byteSize(), process, device.uuid());
      } catch (RuntimeException | Error e) {
        Failures.runAfter(e, pages.files()::close);
        throw e;
      }
    } finally {
      memory.unhold();
      Reference.reachabilityFence(buffer);
    }
  }

  /**
   * Gives all cached memory of the current device back to the driver whose work is done and that no
   * block shares.
   *
   * @return the bytes released
   */
  public long freeAllBlocks() {
    return freeAllBlocks(cuda.currentDevice());
  }

  /**
   * Gives all cached memory of a device back to the driver whose work is done and that no block
   * shares, and the events that are kept there for the next wait of a stream for another. Waits for
   * nothing.
   *
   * @param device the device
   * @return the bytes released
   */
  public long freeAllBlocks(CudaDevice device) {
    return core.freeAllBlocks(CudaDevice.coreOf(device));
  }

  /**
   * Gives cached memory of the current device back to the driver, what was freed first comes first,
   * until no more than some bytes are held. The last page released may leave less than that:
   * cuMemPoolTrimTo, in contrast, keeps at least so much.
   *
   * @param keptBytes the most bytes to hold, >= 0
   * @return the bytes released
   * @throws IllegalArgumentException if keptBytes is negative
   */
  public long trim(long keptBytes) {
    return core.trim(CudaDevice.coreOf(cuda.currentDevice()), keptBytes);
  }

  /**
   * Gives cached memory of the current device back to the driver that nothing was allocated in or
   * freed into for some time.
   *
   * @param idleFor the time, >= 0
   * @return the bytes released
   * @throws IllegalArgumentException if idleFor is negative
   */
  public long trim(Duration idleFor) {
    return core.trim(CudaDevice.coreOf(cuda.currentDevice()), idleFor);
  }

  /** {@return the pages of the current device} */
  public PageStats pages() {
    return pages(cuda.currentDevice());
  }

  /**
   * {@return the pages of a device}
   *
   * @param device the device
   */
  public PageStats pages(CudaDevice device) {
    HeapCensus now = of(device).census();
    return new PageStats(
        now.pageBytes,
        now.mappedBytes / now.pageBytes,
        now.releasableBytes / now.pageBytes,
        now.pieces,
        now.movedPieces);
  }

  /** {@return why memory of the current device is in no block} */
  public Fragmentation fragmentation() {
    return fragmentation(cuda.currentDevice());
  }

  /**
   * {@return why memory of a device is in no block}
   *
   * @param device the device
   */
  public Fragmentation fragmentation(CudaDevice device) {
    HeapCensus now = of(device).census();
    return new Fragmentation(
        now.mappedBytes,
        now.releasableBytes,
        now.doneBytes - now.releasableBytes,
        now.orderedBytes - now.graphBytes,
        now.graphBytes,
        now.pendingBytes);
  }

  /** {@return the bytes of the blocks in use} */
  public long usedBytes() {
    return stats().usedBytes();
  }

  /** {@return the bytes of the cached blocks} */
  public long freeBytes() {
    return stats().freeBytes();
  }

  /** {@return the bytes held, used and free} */
  public long totalBytes() {
    return stats().heldBytes();
  }

  /** {@return the number of cached blocks} */
  public int freeBlocks() {
    return stats().freeBlocks();
  }

  /** {@return all numbers of a device} */
  public PoolStats stats() {
    return stats(cuda.currentDevice());
  }

  /**
   * {@return all numbers of a device} Reclaims first what is complete or forgotten.
   *
   * @param device the device
   */
  public PoolStats stats(CudaDevice device) {
    return core.stats(CudaDevice.coreOf(device));
  }

  /**
   * Starts the peaks of a device anew from what is used and held now.
   *
   * @param device the device
   */
  public void resetPeaks(CudaDevice device) {
    core.resetPeaks(CudaDevice.coreOf(device));
  }

  /** {@return the limit on the current device} */
  public MemoryLimit limit() {
    return limit(cuda.currentDevice());
  }

  /**
   * {@return the limit on a device}
   *
   * @param device the device
   */
  public MemoryLimit limit(CudaDevice device) {
    return core.limit(CudaDevice.coreOf(device));
  }

  /** {@return the limit on the current device in bytes, {@link Long#MAX_VALUE} for none} */
  public long limitBytes() {
    return core.limitBytes(cuda.session().state().device);
  }

  /**
   * Sets the limit on the current device; {@link MemoryLimit#none()}, or one of 0, does not limit.
   *
   * @param limit the limit
   */
  public void setLimit(MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    setLimit(cuda.currentDevice(), limit);
  }

  /**
   * Sets the limit on a device; {@link MemoryLimit#none()}, or one of 0, does not limit. What is
   * held beyond a smaller limit stays; the pool just does not grow.
   *
   * @param device the device
   * @param limit the limit
   */
  public void setLimit(CudaDevice device, MemoryLimit limit) {
    Objects.requireNonNull(limit, "limit");
    core.setLimit(CudaDevice.coreOf(device), limit);
  }

  /**
   * Adds a hook that sees all threads, until the result is closed, or the pool.
   *
   * @param hook the hook
   * @return the registration, closed to remove the hook
   * @throws IllegalStateException if the hook is there already
   */
  public Registration addHook(MemoryHook hook) {
    Objects.requireNonNull(hook, "hook");
    return core.addHook(new HookOfUser(cuda, hook), null);
  }

  /**
   * Adds a hook that sees only this thread, until the scope closes.
   *
   * @param hook the hook
   * @return the scope, closed by the same thread
   */
  public Scope useHook(MemoryHook hook) {
    Objects.requireNonNull(hook, "hook");
    Registration registration = core.addHook(new HookOfUser(cuda, hook), Thread.currentThread());
    return new Scope(cuda.current().scopes, "hook " + hook, registration::close);
  }

  /**
   * Adds a listener that is called when memory runs out, until the result is closed.
   *
   * @param listener the listener
   * @return the registration, closed to remove the listener
   */
  public Registration addPressureListener(PressureListener listener) {
    Objects.requireNonNull(listener, "listener");
    return core.addPressureListener(new MemoryPool.Listening(cuda, listener));
  }

  /**
   * Checks the pool's books, for diagnosis: on each device, the bytes that its limit counts are
   * those mapped and those that threads are mapping at this moment. Other threads wait meanwhile,
   * so this is not for use in production.
   *
   * @throws AssertionError if memory was lost or counted twice, with the numbers
   */
  public void assertConsistent() {
    core.assertConsistent();
  }

  /** {@return whether the pool is closed} */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Frees the cached memory and rejects further allocations. Buffers in use stay valid; their
   * memory goes back to the driver when they are closed. What streams use at that time goes back
   * when one of them, or the device, was waited for, or when memory is needed. Does nothing the
   * second time.
   */
  @Override
  public void close() {
    core.close(this);
  }

  @Override
  public String toString() {
    return core.toString();
  }
}
