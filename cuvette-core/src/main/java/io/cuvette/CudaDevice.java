package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.StreamHandle;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.interop.DriverHandle;
import io.cuvette.internal.interop.LibraryHandles;
import io.cuvette.internal.interop.Workspace;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.share.Importer;
import io.cuvette.internal.stream.Streams;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One device. Devices of the same {@link Cuda} compare by number; they are not closed. Thread-safe.
 */
public final class CudaDevice extends DeviceFacts implements Comparable<CudaDevice> {
  private final Cuda cuda;
  private final CudaStream nullStream;
  private final CudaStream legacyStream;
  private final CudaProfiler profiler;

  CudaDevice(Cuda cuda, Device core) {
    super(core);
    this.cuda = cuda;
    Streams streams = cuda.engine().streams();
    this.nullStream = new CudaStream(this, new OpenStream(streams.nullStream(core), false), null);
    this.legacyStream =
        new CudaStream(this, new OpenStream(streams.legacyStream(core), false), null);
    this.profiler = new CudaProfiler(core);
  }

  /** {@return the Cuda it belongs to} */
  public Cuda cuda() {
    return cuda;
  }

  /**
   * {@return free and total memory now (cuMemGetInfo)}
   *
   * @throws CudaException if the driver reports an error
   */
  public MemoryInfo memoryInfo() {
    return core.memoryInfo();
  }

  /**
   * {@return the memory of the device in bytes (cuDeviceTotalMem)}
   *
   * @throws CudaException if the driver reports an error
   */
  public long totalBytes() {
    return core.totalBytes();
  }

  /**
   * {@return a resource limit of the device, such as the printf buffer (cuCtxGetLimit, CUlimit)}
   *
   * @param limit which limit
   * @throws CudaException if the driver reports an error
   */
  public long limit(int limit) {
    Checks.notNegative("limit", limit);
    return core.ask(driver -> driver.devices().ctxGetLimit(id, limit));
  }

  /**
   * Sets a resource limit of the device (cuCtxSetLimit, CUlimit).
   *
   * @param limit which limit
   * @param value the value, of the unit that the limit has
   * @throws CudaException if the driver reports an error
   */
  public void setLimit(int limit, long value) {
    Checks.notNegative("limit", limit);
    Checks.notNegative("value", value);
    core.run(driver -> driver.devices().ctxSetLimit(id, limit, value));
  }

  /**
   * Makes this device current on this thread until changed; {@link #use()} does it for a scope.
   *
   * @throws IllegalStateException inside a scope, which restores what was current before it
   */
  public void makeCurrent() {
    cuda.setCurrentDevice(this);
  }

  /**
   * Makes this device current on this thread until the scope closes.
   *
   * @return the scope, closed by the same thread
   */
  public Scope use() {
    cuda.checkOpen();
    return cuda.current().use(core);
  }

  /**
   * Waits for all work that the device has now, but for streams that are capturing: these, and the
   * captures of other libraries, go on: cuCtxSynchronize would invalidate them. Each stream that is
   * known here is waited for, and the device by freeing memory, unless callbacks leave no gap.
   *
   * @throws CudaException also for errors of earlier asynchronous work
   * @throws IllegalStateException inside a callback, which it might wait for
   */
  public void synchronize() {
    cuda.engine().synchronize(core);
  }

  /** {@return a new stream with {@link StreamOptions#DEFAULTS}, which the caller closes} */
  public CudaStream createStream() {
    return createStream(StreamOptions.DEFAULTS);
  }

  /**
   * Creates a stream (cuStreamCreateWithPriority).
   *
   * @param options the options
   * @return the stream
   * @throws IllegalArgumentException if the priority is outside {@link #priorityRange()}
   * @throws CudaException if the driver reports an error
   */
  public CudaStream createStream(StreamOptions options) {
    Objects.requireNonNull(options, "options");
    return CudaStream.create(this, options);
  }

  /** {@return the null stream, handle 0, which synchronizes with all blocking streams} */
  public CudaStream nullStream() {
    return nullStream;
  }

  /** {@return the legacy default stream under its own handle 1} */
  public CudaStream legacyStream() {
    return legacyStream;
  }

  /**
   * {@return the default stream of this OS thread, handle 2} Only this thread can use it.
   *
   * @throws WrongThreadException on a virtual thread, which has no OS thread of its own
   */
  public CudaStream perThreadStream() {
    return cuda.threadStreams().perThread(this);
  }

  /**
   * Wraps a stream that another library created and destroys (cuStreamGetId, cuStreamGetDevice).
   * Close the wrapper before the stream is destroyed: that hands its cached memory on.
   *
   * @param handle CUstream
   * @param owner kept reachable as long as the wrapper; may be null
   * @return the stream
   * @throws CudaException if the driver does not know the handle
   * @throws IllegalArgumentException if the stream is another device's
   */
  public CudaStream wrapStream(long handle, @Nullable Object owner) {
    if (handle == StreamHandle.NULL) {
      return nullStream;
    }
    if (handle == StreamHandle.LEGACY) {
      return legacyStream;
    }
    if (handle == StreamHandle.PER_THREAD) {
      return perThreadStream();
    }
    return new CudaStream(this, new OpenStream(streams().wrap(core, handle), false), owner);
  }

  /** {@return a new event with {@link EventOptions#DEFAULTS}, which the caller closes} */
  public CudaEvent createEvent() {
    return createEvent(EventOptions.DEFAULTS);
  }

  /**
   * Creates an event (cuEventCreate).
   *
   * @param options the options
   * @return the event
   * @throws CudaException if the driver reports an error
   */
  public CudaEvent createEvent(EventOptions options) {
    Objects.requireNonNull(options, "options");
    return CudaEvent.create(this, options);
  }

  /**
   * Reserves addresses for memory that grows at one place (cuMemAddressReserve); the caller closes
   * the buffer. It has no bytes yet, and its memory is this device's alone.
   *
   * @param maxBytes the largest size that it may reach, in bytes, > 0
   * @return a buffer of 0 bytes
   * @throws UnsupportedOperationException if the device has no virtual memory
   * @throws CudaException if the driver reports an error, such as no addresses left
   */
  public GrowableBuffer growable(long maxBytes) {
    return growable(GrowableOptions.ofMaxBytes(maxBytes));
  }

  /**
   * Reserves addresses for memory that grows at one place (cuMemAddressReserve); the caller closes
   * the buffer.
   *
   * @param options its largest size, and who may access its memory
   * @return a buffer of 0 bytes
   * @throws UnsupportedOperationException if the device has no virtual memory
   * @throws IllegalArgumentException if a peer cannot access the memory of this device
   * @throws CudaException if the driver reports an error, such as no addresses left
   */
  public GrowableBuffer growable(GrowableOptions options) {
    return GrowableBuffer.make(this, options);
  }

  /** {@return memory for graphs of this device to share; the caller closes it} */
  public GraphMemory createGraphMemory() {
    return new GraphMemory(core);
  }

  /**
   * {@return memory for graphs of this device to share, with room taken from the current allocator
   * at once; the caller closes it}
   *
   * @param bytes the room, in one piece: as much as the largest of the graphs needs
   * @throws IllegalArgumentException if bytes is negative
   * @throws OutOfDeviceMemoryException if there is not enough memory
   */
  public GraphMemory createGraphMemory(long bytes) {
    Checks.notNegative("bytes", bytes);
    GraphMemory memory = createGraphMemory();
    try (CudaStream stream = createStream(StreamOptions.NON_BLOCKING);
        CudaGraph _ =
            stream.capture(
                CaptureOptions.DEFAULTS.withMemory(memory),
                () -> cuda.allocate(bytes, stream).close())) {
      return memory; // the piece stays with it
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, memory::close);
      throw e;
    }
  }

  /**
   * {@return whether this device can address the memory of a peer; true for itself
   * (cuDeviceCanAccessPeer)}
   *
   * @param peer the other device
   * @throws CudaException if the driver reports an error
   */
  public boolean canAccess(CudaDevice peer) {
    checkSameCuda(Objects.requireNonNull(peer, "peer"));
    return core.session().ask(_ -> core.session().peers().can(id, peer.id));
  }

  /**
   * Lets this device address the memory of a peer; does nothing if it can already
   * (cuCtxEnablePeerAccess).
   *
   * @param peer the other device
   * @throws CudaException PEER_ACCESS_UNSUPPORTED if the devices cannot
   * @throws IllegalArgumentException if the peer is this device
   */
  public void enablePeerAccess(CudaDevice peer) {
    checkPeer(peer);
    peer.core.context();
    core.run(_ -> core.session().peers().enable(id, peer.id));
  }

  /**
   * Takes peer access back; does nothing if there is none (cuCtxDisablePeerAccess).
   *
   * @param peer the other device
   * @throws CudaException if the driver reports an error
   */
  public void disablePeerAccess(CudaDevice peer) {
    checkPeer(peer);
    core.run(_ -> core.session().peers().disable(id, peer.id));
  }

  /**
   * {@return the cublasHandle_t of this platform thread for this device, which is the same each
   * time} It queues its work in the stream that is current on this thread at this call, in a
   * workspace from the current allocator. Handles end with the Cuda; those of threads that have
   * ended are given to others.
   *
   * @throws WrongThreadException on a virtual thread; {@link #useCublas} lends one there
   * @throws CudaException if cuBLAS is missing, with what to install, or reports an error
   */
  public long cublasHandle() {
    return handleOfThread(MathLibrary.CUBLAS);
  }

  /** {@return the same as {@link #cublasHandle}, for dense matrices: cusolverDnHandle_t} */
  public long cusolverDnHandle() {
    return handleOfThread(MathLibrary.CUSOLVER_DN);
  }

  /** {@return the same as {@link #cublasHandle}, for sparse matrices: cusolverSpHandle_t} */
  public long cusolverSpHandle() {
    return handleOfThread(MathLibrary.CUSOLVER_SP);
  }

  private long handleOfThread(MathLibrary library) {
    OpenStream stream = cuda.currentStream(this).core();
    return cuda.engine().libraryHandles().ofThread(library, stream, this::workspace);
  }

  /**
   * {@return {@link #useLibrary} of cuBLAS, with as large a workspace as NVIDIA recommends}
   *
   * @param stream of this device
   */
  public LibraryHandle useCublas(CudaStream stream) {
    long bytes = LibraryHandles.bytes(MathLibrary.CUBLAS, core);
    return useLibrary(MathLibrary.CUBLAS, stream, bytes);
  }

  /**
   * Lends a handle of a library that queues its work in a stream, to any thread.
   *
   * @param library the library
   * @param stream of this device
   * @param workspaceBytes the size of the workspace from the current allocator, >= 0; 0 for memory
   *     of the library's own, which is all that cuSOLVER has
   * @return the handle, which the caller closes
   * @throws CudaException if the library is missing, with what to install, or reports an error
   */
  public LibraryHandle useLibrary(MathLibrary library, CudaStream stream, long workspaceBytes) {
    LibraryHandles handles = cuda.engine().libraryHandles();
    DriverHandle lent =
        handles.lend(library, core, CudaStream.coreOf(stream), workspaceBytes, this::workspace);
    return new LibraryHandle(handles, lent);
  }

  private Workspace workspace(long bytes, OpenStream stream) {
    Buffer memory = cuda.allocate(bytes, CudaStream.of(stream));
    return new Workspace(memory.address(), bytes, memory::close);
  }

  /** {@return what starts and stops profiling} */
  public CudaProfiler profiler() {
    return profiler;
  }

  /**
   * Wraps foreign memory of this device, or host memory, as a buffer. Closing the buffer frees
   * nothing.
   *
   * @param address as CUDA gave it; 0 only with 0 bytes
   * @param bytes the size in bytes, >= 0; checked against the allocation where the driver knows it
   * @param owner kept reachable as long as the buffer; may be null
   * @return the buffer
   * @throws IllegalArgumentException if the memory is another device's, unknown, or smaller
   */
  public Buffer wrap(long address, long bytes, @Nullable Object owner) {
    cuda.checkOpen();
    return ForeignMemory.wrap(this, address, bytes, owner);
  }

  /**
   * Wraps foreign memory that the buffer frees: {@code free} is called once, when the buffer is
   * closed or found forgotten, after the streams that used it were waited for and after a callback
   * that closed it. What it throws is thrown by {@code close}, by the call that found the buffer or
   * by {@code Cuda.close()}, or else passed to the thread's uncaught-exception handler.
   *
   * @param address the first address
   * @param bytes the size in bytes, >= 1
   * @param free frees the memory, called once
   * @return the buffer
   * @see #wrap(long, long, Object)
   */
  public Buffer adopt(long address, long bytes, Runnable free) {
    return ForeignMemory.adopt(this, address, bytes, free);
  }

  /**
   * Imports a plain buffer of another process in order of this thread's current stream.
   *
   * @param descriptor the descriptor of the exporting process
   * @return the buffer
   * @see #importBuffer(BufferDescriptor, CudaStream)
   */
  public DeviceBuffer importBuffer(BufferDescriptor descriptor) {
    return importBuffer(descriptor, cuda.currentStream(this));
  }

  /**
   * Imports device memory without a pool from another process (cuIpcOpenMemHandle, with lazy peer
   * access). The whole allocation is mapped, and a buffer is the part of it that its descriptor
   * names. An allocation that is imported several times is mapped once; the last buffer to close
   * waits for the streams that used any of them and closes it (cuIpcCloseMemHandle).
   *
   * @param descriptor of kind {@link BufferDescriptor.Kind#PLAIN}
   * @param stream of this device
   * @return the buffer
   * @throws IllegalArgumentException if it is of another kind or this process, or claims too much
   * @throws CudaException if the driver refuses, for example because the exporter is gone
   */
  public DeviceBuffer importBuffer(BufferDescriptor descriptor, CudaStream stream) {
    Objects.requireNonNull(descriptor, "descriptor");
    Objects.requireNonNull(stream, "stream");
    cuda.checkOpen();
    return (DeviceBuffer)
        Importer.plain(descriptor, cuda.engine().imports(), core, stream.core(), BufferKind.DEVICE);
  }

  /**
   * Imports a buffer of another process's {@link ElasticMemoryPool}: its pages in one range, mapped
   * once (cuMemImportFromShareableHandle, cuMemMap); the last close waits for the streams of all.
   *
   * @param handles the handles, which stay the caller's to close, at any time
   * @param stream of this device, which has the memory or can access it
   * @return the buffer
   * @throws IllegalArgumentException if the pages are not what is claimed, or of this very process
   * @throws IllegalStateException if the handles are closed
   * @throws CudaException if the driver reports an error
   */
  public DeviceBuffer importBuffer(PageHandles handles, CudaStream stream) {
    Objects.requireNonNull(handles, "handles");
    Objects.requireNonNull(stream, "stream");
    handles.checkOpen();
    cuda.checkOpen();
    return (DeviceBuffer)
        Importer.pages(
            handles.descriptor(),
            handles.files(),
            cuda.engine().imports(),
            core,
            stream.core(),
            BufferKind.DEVICE);
  }

  /**
   * Imports an event of another process (cuIpcOpenEventHandle). It orders, is queried and waited
   * for like any other; it has no timing. The exporter must keep its own open as long.
   *
   * @param descriptor the descriptor of the exporting process
   * @return the event
   * @throws CudaException if the driver refuses, for example in the process that made the event
   */
  public CudaEvent importEvent(EventDescriptor descriptor) {
    Objects.requireNonNull(descriptor, "descriptor");
    return CudaEvent.imported(this, descriptor);
  }

  @Override
  public int compareTo(CudaDevice other) {
    return Integer.compare(id, other.id);
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof CudaDevice device && device.id == id && device.cuda == cuda;
  }

  @Override
  public int hashCode() {
    return Integer.hashCode(id);
  }

  @Override
  public String toString() {
    return "device " + id;
  }

  /** The device as the engine knows it. */
  Device core() {
    return core;
  }

  /** The streams as the engine knows them. */
  Streams streams() {
    return cuda.engine().streams();
  }

  /** {@link #core()} of an argument. */
  static Device coreOf(CudaDevice device) {
    return Objects.requireNonNull(device, "device").core;
  }

  private void checkSameCuda(CudaDevice peer) {
    if (peer.cuda != cuda) {
      throw new IllegalArgumentException("peer: %s belongs to another Cuda".formatted(peer));
    }
  }

  private void checkPeer(CudaDevice peer) {
    checkSameCuda(Objects.requireNonNull(peer, "peer"));
    if (peer.id == id) {
      throw new IllegalArgumentException(
          "peer: %s (expected: another device than this)".formatted(peer));
    }
  }
}
