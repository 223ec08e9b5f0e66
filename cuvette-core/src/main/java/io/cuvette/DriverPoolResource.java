package io.cuvette;

import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.BlockLifetime;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.ordered.DriverPool;
import io.cuvette.internal.ordered.DriverPools;
import io.cuvette.internal.ordered.StreamOrderedAllocator;
import io.cuvette.internal.ordered.StreamOrderedLifetime;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.share.ImportedLifetime;
import io.cuvette.internal.share.Imports;
import io.cuvette.internal.share.PoolSharing;
import io.cuvette.internal.share.PoolSource;
import io.cuvette.internal.share.ResourceLifetime;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Memory from one pool of the driver, with the face of cuda.core's memory resources. A resource
 * that made its pool destroys it when closed; one that uses a pool of the driver just lets go of
 * it. Thread-safe.
 */
public abstract sealed class DriverPoolResource implements MemoryResource, AutoCloseable
    permits DeviceMemoryResource, ManagedMemoryResource, PinnedMemoryResource {
  private final Cuda cuda;
  private final DriverPool pool;
  private final StreamOrderedAllocator allocator;
  private final PoolAttributes attributes;
  private final @Nullable PoolSharing sharing;

  /** As users see it. */
  private final @Nullable AllocationHandle handle;

  private final ResourceLifetime lifetime;

  DriverPoolResource(Cuda cuda, PoolSource source, Faces faces) {
    this.cuda = cuda;
    this.pool = source.pool();
    this.sharing = source.sharing();
    try {
      this.handle = sharing == null ? null : new AllocationHandle(sharing.handle());
      this.allocator = new StreamOrderedAllocator(pool, faces);
      this.attributes = new PoolAttributes(pool, this);
      if (sharing != null) {
        pool.memory().shareAs(sharing.kind());
      }
      this.lifetime = new ResourceLifetime(this, source);
    } catch (OutOfMemoryError e) {
      Failures.closeAfter(e, pool::close);
      throw e;
    }
  }

  /**
   * Allocates in order of a stream (cuMemAllocFromPoolAsync).
   *
   * @param bytes at least 0; 0 gives a buffer without memory
   * @throws OutOfDeviceMemoryException if the pool has no room, after everything was tried
   * @throws IllegalStateException if the resource or the stream is closed, or the stream is
   *     capturing
   * @throws UnsupportedOperationException if the pool is another process's: nothing can be
   *     allocated from it here
   */
  @Override
  public abstract Buffer allocate(long bytes, CudaStream stream);

  /** Allocates in order of this thread's current stream. */
  public abstract Buffer allocate(long bytes);

  /**
   * Gives a buffer of this resource back in order of its stream; the same as closing it.
   *
   * @throws IllegalArgumentException if it is another's, or a slice
   */
  public final void deallocate(Buffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    deallocate(buffer, null);
  }

  /**
   * Gives a buffer of this resource back behind the work queued on another stream so far.
   *
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
   * Gives back the buffer of this resource that begins at an address, in order of its stream; the
   * same as closing it. Looks through all that are open: prefer {@link #deallocate(Buffer)}.
   *
   * @param address 0 with 0 bytes does nothing
   * @param bytes the size of the buffer
   * @throws IllegalArgumentException if no such buffer is open
   */
  public final void deallocate(long address, long bytes) {
    deallocate(address, bytes, null);
  }

  /**
   * Gives back the buffer of this resource that begins at an address, behind the work queued on
   * another stream so far.
   *
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
    StreamOrderedLifetime block = pool.memory().find(address);
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
        block.useIn(stream.state);
      } finally {
        block.unhold();
      }
    }
    block.close();
  }

  /** What the pool says of itself, and its settings; live. */
  public final PoolAttributes attributes() {
    return attributes;
  }

  /**
   * The handle of the pool (CUmemoryPool).
   *
   * @throws IllegalStateException if the resource is closed: another pool may get the handle
   */
  public final long handle() {
    pool.checkOpen();
    return pool.handle();
  }

  /** Whether the pool was made here and is destroyed after closing; false once closed. */
  public final boolean isHandleOwned() {
    return pool.isOwned();
  }

  /**
   * Whether other processes can import the pool and its buffers, or it was imported; true for a
   * mapped one.
   */
  public final boolean isIpcEnabled() {
    return sharing != null;
  }

  /**
   * Whether the pool is another process's, made with {@code fromAllocationHandle}: buffers can be
   * imported through it, and none allocated.
   */
  public final boolean isMapped() {
    return sharing != null && sharing.mapped();
  }

  /**
   * The identity of the pool, the same in all processes that were sent its handle; empty if it is
   * not IPC-enabled, or was imported without one and not registered.
   */
  public final Optional<UUID> uuid() {
    return sharing == null ? Optional.empty() : sharing.handle().uuid();
  }

  /**
   * What other processes import the pool by; the same object each time
   * (cuMemPoolExportToShareableHandle). It belongs to this resource, which closes it: what must
   * live longer takes a {@link AllocationHandle#duplicate()}. That of a mapped resource passes the
   * pool on.
   *
   * @throws IllegalStateException if the resource is closed or not IPC-enabled
   */
  public final AllocationHandle allocationHandle() {
    PoolSharing _ = sharing("allocationHandle");
    AllocationHandle known = Objects.requireNonNull(handle);
    pool.checkOpen();
    return known;
  }

  /** Whether devices can access the memory. */
  public abstract boolean isDeviceAccessible();

  /** Whether the host can access the memory. */
  public abstract boolean isHostAccessible();

  /** The number of the device the memory belongs to; −1 if it belongs to none. */
  public abstract int deviceId();

  /**
   * Gives what nobody uses back to the driver's side of the process, down to a size
   * (cuMemPoolTrimTo).
   *
   * @param bytesToKeep at least 0
   */
  public final void trimTo(long bytesToKeep) {
    Checks.notNegative("bytesToKeep", bytesToKeep);
    try {
      pool.trimTo(bytesToKeep);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** Whether the resource was closed. */
  public final boolean isClosed() {
    return lifetime.ended();
  }

  /**
   * Lets nobody allocate or import any more, and closes the allocation handle. Buffers in use stay
   * valid; a pool that was made or imported here is destroyed after the last of them
   * (cuMemPoolDestroy). Does nothing the second time.
   */
  @Override
  public final void close() {
    lifetime.close();
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
      return Imports.ofPool(
          descriptor.core(), kind, cuda.engine().imports(), pool, CudaStream.coreOf(stream), faces);
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
    handle.checkOpen();
    cuda.session().leaks().drain();
    DriverPools pools = cuda.engine().driverPools();
    Supplier<R> importer = () -> PoolSharing.imported(pools, home, handle.duplicate(), kind, maker);
    UUID uuid = handle.uuid().orElse(null);
    return uuid == null
        ? importer.get()
        : cuda.registry().alone(uuid, () -> registered(cuda, uuid, handle, type, importer));
  }

  private static <R extends DriverPoolResource> R registered(
      Cuda cuda, UUID uuid, PoolHandle handle, Class<R> type, Supplier<R> importer) {
    DriverPoolResource known = cuda.registry().find(uuid, handle);
    if (known != null) {
      return ResourceRegistry.as(known, uuid, type);
    }
    R made = importer.get();
    try {
      R registered = made.register(uuid, type);
      if (registered != made) {
        made.close(); // somebody registered another just now
      }
      return registered;
    } catch (RuntimeException | Error e) {
      Failures.closeAfter(e, made);
      throw e;
    }
  }

  /** Registers this resource under its UUID, or one that it gets by that. */
  final <R extends DriverPoolResource> R register(UUID uuid, Class<R> type) {
    PoolSharing shared = sharing("register");
    pool.checkOpen();
    shared.handle().checkIdentity(uuid);
    ResourceRegistry registry = cuda.registry();
    DriverPoolResource found = registry.find(uuid, shared.handle());
    if (found == null) {
      shared.handle().identify(uuid);
      found = registry.register(uuid, this, shared.handle());
    }
    return ResourceRegistry.as(found, uuid, type);
  }

  private PoolSharing sharing(String what) {
    PoolSharing shared = sharing;
    if (shared == null) {
      throw new IllegalStateException(
          "%s: %s is not IPC-enabled (expected: options.withIpcEnabled(true))"
              .formatted(what, this));
    }
    return shared;
  }

  private void checkMine(Memory buffer) {
    BlockLifetime block = buffer.lifetime();
    boolean mine =
        switch (block) {
          case StreamOrderedLifetime taken -> taken.isOf(pool.memory());
          case ImportedLifetime imported -> imported.isOf(pool);
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
