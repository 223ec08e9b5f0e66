package io.cuvette;

import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.async.OrderedAllocator;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.driverpool.PoolExport;
import io.cuvette.internal.driverpool.PoolSource;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.ordered.OrderedBlock;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.share.Importer;
import io.cuvette.internal.share.MappedBlock;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Memory from one pool of the driver, with the face of cuda.core's memory resources. A resource
 * that made its pool destroys it when closed; one that uses a pool of the driver only releases it.
 * Thread-safe.
 */
public abstract sealed class DriverPoolResource implements MemoryResource, AutoCloseable
    permits DeviceMemoryResource, ManagedMemoryResource, PinnedMemoryResource {
  private final Cuda cuda;
  private final DriverPool pool;
  private final OrderedAllocator allocator;
  private final PoolAttributes attributes;
  private final @Nullable PoolExport sharing;

  /** As users see it. */
  private final @Nullable AllocationHandle handle;

  private final ObjectEnding ending;

  DriverPoolResource(Cuda cuda, PoolSource source, Faces faces) {
    this.cuda = cuda;
    this.pool = source.pool();
    this.sharing = source.sharing();
    try {
      this.handle = sharing == null ? null : new AllocationHandle(sharing.handle());
      this.allocator = new OrderedAllocator(pool, faces);
      this.attributes = new PoolAttributes(pool, this);
      if (sharing != null) {
        pool.memory().shareAs(sharing.kind());
      }
      String text = "%s of %s".formatted(getClass().getSimpleName(), pool);
      this.ending = ObjectEnding.of(this, pool.session(), text, true, source::close);
    } catch (OutOfMemoryError e) {
      pool.abandon(e);
      throw e;
    }
    if (pool.session().isClosed()) {
      ending.close(this); // nobody may look at the children any more
    }
  }

  /**
   * Allocates in order of a stream (cuMemAllocFromPoolAsync).
   *
   * @param bytes the size in bytes, >= 0; 0 gives a buffer without memory
   * @param stream the stream in whose order the memory is allocated and later freed
   * @return a buffer of that size, whose memory work on the stream can use from here on
   * @throws IllegalArgumentException if {@code bytes} is negative, or the stream is of another Cuda
   * @throws OutOfDeviceMemoryException if the pool has no room, after everything was tried
   * @throws IllegalStateException if the resource or the stream is closed, or the stream is
   *     capturing
   * @throws UnsupportedOperationException if the pool is another process's: nothing can be
   *     allocated from it here
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  @Override
  public abstract Buffer allocate(long bytes, CudaStream stream);

  /**
   * Allocates in order of this thread's current stream.
   *
   * @param bytes the size in bytes, >= 0
   * @return the buffer
   */
  public abstract Buffer allocate(long bytes);

  /**
   * Gives a buffer of this resource back in order of its stream; the same as closing it.
   *
   * @param buffer the buffer
   * @throws IllegalArgumentException if it is another's, or a slice
   */
  public final void deallocate(Buffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    deallocate(buffer, null);
  }

  /**
   * Gives a buffer of this resource back behind the work queued on another stream so far.
   *
   * @param buffer the buffer
   * @param stream null for the stream it was allocated on
   * @throws IllegalArgumentException if the buffer is another's, or a slice
   */
  public final void deallocate(Buffer buffer, @Nullable CudaStream stream) {
    Objects.requireNonNull(buffer, "buffer");
    checkMine(BufferBase.base(buffer).memory());
    if (stream != null) {
      buffer.recordUse(stream);
    }
    buffer.close();
  }

  /**
   * Frees the buffer of this resource that begins at an address, in order of its stream; the same
   * as closing it. Looks through all that are open: prefer {@link #deallocate(Buffer)}.
   *
   * @param address the address of the buffer; 0 with 0 bytes does nothing
   * @param bytes the size of the buffer in bytes, >= 0
   * @throws IllegalArgumentException if no such buffer is open
   */
  public final void deallocate(long address, long bytes) {
    deallocate(address, bytes, null);
  }

  /**
   * Frees the buffer of this resource that begins at an address, behind the work queued on another
   * stream so far.
   *
   * @param address the address
   * @param bytes the size in bytes, >= 0
   * @param stream null for the stream it was allocated on
   * @see #deallocate(long, long)
   */
  public final void deallocate(long address, long bytes, @Nullable CudaStream stream) {
    pool.session().checkOpen();
    if (stream != null) {
      cuda.checkOwn(stream);
    }
    if (address == 0 && bytes == 0) {
      return;
    }
    OrderedBlock block = pool.memory().find(address);
    if (block == null || block.blockBytes() != bytes) {
      throw new IllegalArgumentException(
          "address: 0x%x with %d bytes (expected: an open buffer of %s%s)"
              .formatted(
                  address,
                  bytes,
                  this,
                  block == null ? "" : "; the one there has " + block.blockBytes()));
    }
    if (stream != null) {
      block.hold();
      try {
        block.useIn(stream.state, stream.state.capture());
      } finally {
        block.unhold();
      }
    }
    block.close(this);
  }

  /** {@return the attributes of the pool, queried each time} */
  public final PoolAttributes attributes() {
    return attributes;
  }

  /**
   * {@return the handle of the pool (CUmemoryPool)}
   *
   * @throws IllegalStateException if the resource is closed: another pool may get the handle
   */
  public final long handle() {
    pool.checkOpen();
    return pool.handle();
  }

  /**
   * {@return whether the pool was created here and is destroyed after closing; false once closed}
   */
  public final boolean isHandleOwned() {
    return pool.isOwned();
  }

  /**
   * {@return whether other processes can import the pool and its buffers, or it was imported; true
   * for a mapped one}
   */
  public final boolean isIpcEnabled() {
    return sharing != null;
  }

  /**
   * {@return whether the pool is another process's, imported with {@code fromAllocationHandle}:
   * buffers can be imported through it, and none allocated}
   */
  public final boolean isMapped() {
    return sharing != null && sharing.mapped();
  }

  /**
   * {@return the identity of the pool, the same in all processes that were sent its handle; empty
   * if it is not IPC-enabled, or was imported without one and not registered}
   */
  public final Optional<UUID> uuid() {
    return sharing == null ? Optional.empty() : sharing.handle().uuid();
  }

  /**
   * {@return the handle by which other processes import the pool, the same object each time
   * (cuMemPoolExportToShareableHandle)} It belongs to this resource, which closes it: what must
   * live longer takes a {@link AllocationHandle#duplicate()}. That of a mapped resource passes the
   * pool on.
   *
   * @throws IllegalStateException if the resource is closed or not IPC-enabled
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public final AllocationHandle allocationHandle() {
    PoolExport _ = sharing("allocationHandle");
    AllocationHandle known = Objects.requireNonNull(handle);
    pool.checkOpen();
    return known;
  }

  /** {@return whether devices can access the memory} */
  public abstract boolean isDeviceAccessible();

  /** {@return whether the host can access the memory} */
  public abstract boolean isHostAccessible();

  /** {@return the number of the device the memory belongs to; −1 if it belongs to none} */
  public abstract int deviceId();

  /**
   * Releases unused memory to the driver, down to a size (cuMemPoolTrimTo).
   *
   * @param bytesToKeep the bytes of memory to keep in the pool, >= 0
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public final void trimTo(long bytesToKeep) {
    Checks.notNegative("bytesToKeep", bytesToKeep);
    try {
      pool.trimTo(bytesToKeep);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** {@return whether the resource is closed} */
  public final boolean isClosed() {
    return ending.ended();
  }

  /**
   * Rejects further allocations and imports, and closes the allocation handle. Buffers in use stay
   * valid; a pool that was made or imported here is destroyed after the last of them
   * (cuMemPoolDestroy). Does nothing the second time.
   *
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  @Override
  public final void close() {
    ending.close(this);
  }

  final Cuda cuda() {
    return cuda;
  }

  final DriverPool pool() {
    return pool;
  }

  final Face take(long bytes, CudaStream stream) {
    if (isMapped()) {
      throw new UnsupportedOperationException(
          "%s is mapped: nothing can be allocated from the pool of another process (expected:"
                  .formatted(this)
              + " importBuffer)");
    }
    try {
      return allocator.allocate(bytes, bytes, CudaStream.coreOf(stream));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  final Face importBuffer(
      BufferDescriptor descriptor, BufferDescriptor.Kind kind, CudaStream stream, Faces faces) {
    sharing("importBuffer");
    pool.checkOpen();
    try {
      return Importer.ofPool(
          descriptor, kind, cuda.engine().imports(), pool, CudaStream.coreOf(stream), faces);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** A pool of the driver at a place, as its calls take it. */
  static PoolProperties poolAt(
      MemoryLocation location, int allocationType, int handleTypes, long maxBytes) {
    return new PoolProperties(
        allocationType, handleTypes, location.type(), location.id(), maxBytes);
  }

  /**
   * The registered resource of a pool of another process, or a new one.
   *
   * @param home the device the memory is of, null if it is of none
   */
  static <R extends DriverPoolResource> R fromHandle(
      Cuda cuda,
      @Nullable Device home,
      AllocationHandle given,
      Class<R> type,
      BufferDescriptor.Kind kind,
      Function<PoolSource, R> maker) {
    PoolHandle handle = given.core();
    cuda.session().checkOpen();
    cuda.session().leaks().drain();
    DriverPools pools = cuda.engine().driverPools();
    Supplier<R> importer = () -> PoolExport.imported(pools, home, handle.duplicate(), kind, maker);
    UUID uuid = handle.uuid().orElse(null);
    return uuid == null
        ? importer.get()
        : cuda.registry().alone(uuid, () -> registered(cuda, uuid, handle, type, importer));
  }

  private static <R extends DriverPoolResource> R registered(
      Cuda cuda, UUID uuid, PoolHandle handle, Class<R> type, Supplier<R> importer) {
    Object known = cuda.registry().find(uuid, handle);
    if (known != null) {
      return ResourceRegistry.as(known, uuid, type);
    }
    R made = importer.get();
    try {
      R registered = made.register(uuid, type);
      if (registered != made) {
        made.close(); // another thread registered one just now
      }
      return registered;
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, made::close);
      throw e;
    }
  }

  /** What ends it. */
  final Ending ending() {
    return ending;
  }

  /** Registers this resource under its UUID, or one that it gets by that. */
  final <R extends DriverPoolResource> R register(UUID uuid, Class<R> type) {
    PoolExport shared = sharing("register");
    pool.checkOpen();
    shared.handle().checkIdentity(uuid);
    ResourceRegistry registry = cuda.registry();
    Object found = registry.find(uuid, shared.handle());
    if (found == null) {
      shared.handle().identify(uuid);
      found = registry.register(uuid, this, ending, shared.handle());
    }
    return ResourceRegistry.as(found, uuid, type);
  }

  private PoolExport sharing(String what) {
    PoolExport shared = sharing;
    if (shared == null) {
      throw new IllegalStateException(
          "%s: %s is not IPC-enabled (expected: options.withIpcEnabled(true))"
              .formatted(what, this));
    }
    return shared;
  }

  private void checkMine(Memory buffer) {
    Block block = buffer.block();
    boolean mine =
        switch (block) {
          case OrderedBlock taken -> taken.isOf(pool.memory());
          case MappedBlock imported -> imported.isOf(pool);
          default -> buffer.byteSize() == 0 && buffer.on().session() == pool.session();
        };
    if (!mine) {
      throw new IllegalArgumentException("%s is no buffer of %s".formatted(buffer, this));
    }
    if (!buffer.isWhole()) {
      throw new IllegalArgumentException("%s (expected: the whole buffer)".formatted(buffer));
    }
  }
}
