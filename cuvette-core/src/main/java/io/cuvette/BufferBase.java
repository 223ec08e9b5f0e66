package io.cuvette;

import io.cuvette.internal.Checks;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What the three kinds of buffers share. */
abstract class BufferBase {
  private final long address;
  private final long byteSize;
  private final OpenStream stream;

  /** The buffer this is a slice of: it stays reachable as long as its slices. */
  private final @Nullable BufferBase root;

  private BlockLifetime lifetime;

  /** A buffer that owns memory; {@link #own} follows. */
  @SuppressWarnings("NullAway.Init")
  BufferBase(long address, long byteSize, OpenStream stream) {
    this.address = address;
    this.byteSize = byteSize;
    this.stream = stream;
    this.root = null;
  }

  /** A slice. */
  BufferBase(BufferBase of, long offset, long bytes) {
    Checks.part(offset, bytes, of.byteSize);
    of.lifetime.checkOpen();
    this.address = bytes == 0 ? 0 : of.address + offset;
    this.byteSize = bytes;
    this.stream = of.stream;
    this.root = of;
    this.lifetime = of.lifetime;
  }

  final void own(BlockLifetime owned) {
    attach(owned);
    owned.opened();
  }

  /** The same for what is not complete: {@link Lifetime#opened} follows. */
  final void attach(BlockLifetime owned) {
    this.lifetime = owned;
  }

  final BlockLifetime lifetime() {
    return lifetime;
  }

  /** A block of this memory as a buffer of the same kind; {@link #own} follows. */
  abstract BufferBase block(long offset, long bytes, OpenStream of);

  /** Itself as the public type. */
  abstract Buffer asBuffer();

  /** The buffer that owns the memory: this, or what this is a slice of. */
  final BufferBase whole() {
    return root == null ? this : root.whole();
  }

  /** The host's side of the memory, for the library's own use; null if the host has none. */
  @Nullable MemorySegment hostMemory() {
    return null;
  }

  /** Where a segment of this memory that users have seen is; {@link #address} if there is none. */
  long hostAddress() {
    return address;
  }

  public final long address() {
    return address;
  }

  public final long byteSize() {
    return byteSize;
  }

  public final long blockBytes() {
    return lifetime.blockBytes();
  }

  public final CudaDevice device() {
    return stream().device();
  }

  /** The stream as the engine knows it. */
  final OpenStream order() {
    return stream;
  }

  /** The device as the engine knows it. */
  final Device on() {
    return stream.on();
  }

  public final CudaStream stream() {
    return CudaStream.of(stream);
  }

  public final boolean isClosed() {
    return lifetime.ended();
  }

  public final void copyFrom(Buffer source) {
    Objects.requireNonNull(source, "source");
    Transfers.copy(this, base(source), current());
  }

  public final void copyFrom(Buffer source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    Transfers.copyAsync(this, base(source), CudaStream.coreOf(stream));
  }

  public final void copyTo(Buffer target) {
    Objects.requireNonNull(target, "target");
    target.copyFrom(asBuffer());
  }

  public final void copyTo(Buffer target, CudaStream stream) {
    Objects.requireNonNull(target, "target");
    target.copyFrom(asBuffer(), stream);
  }

  public final void copyFrom(MemorySegment source) {
    Objects.requireNonNull(source, "source");
    HostTransfers.copyIn(this, source, current());
  }

  public final void copyFrom(MemorySegment source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    HostTransfers.copyInAsync(this, source, CudaStream.coreOf(stream));
  }

  public final void copyTo(MemorySegment target) {
    Objects.requireNonNull(target, "target");
    HostTransfers.copyOut(this, target, current());
  }

  public final void copyTo(MemorySegment target, CudaStream stream) {
    Objects.requireNonNull(target, "target");
    HostTransfers.copyOutAsync(this, target, CudaStream.coreOf(stream));
  }

  public final void fill(byte value) {
    Transfers.fill(this, FillValue.ofByte(value), current());
  }

  public final void fill(byte value, CudaStream stream) {
    Transfers.fillAsync(this, FillValue.ofByte(value), CudaStream.coreOf(stream));
  }

  public final void fill(int value) {
    Transfers.fill(this, FillValue.ofByte(value), current());
  }

  public final void fill(int value, CudaStream stream) {
    Transfers.fillAsync(this, FillValue.ofByte(value), CudaStream.coreOf(stream));
  }

  public final void fillShorts(short value) {
    Transfers.fill(this, FillValue.ofShort(value), current());
  }

  public final void fillShorts(short value, CudaStream stream) {
    Transfers.fillAsync(this, FillValue.ofShort(value), CudaStream.coreOf(stream));
  }

  public final void fillInts(int value) {
    Transfers.fill(this, FillValue.ofInt(value), current());
  }

  public final void fillInts(int value, CudaStream stream) {
    Transfers.fillAsync(this, FillValue.ofInt(value), CudaStream.coreOf(stream));
  }

  public final void recordUse(CudaStream stream) {
    CudaStream.coreOf(stream).checkOf(on().session());
    lifetime.hold();
    try {
      lifetime.useIn(stream.state);
      BlockReports.usedElsewhere(this, stream.state);
    } finally {
      unhold();
    }
  }

  public final boolean isMapped() {
    return lifetime.isMapped();
  }

  public final BufferDescriptor descriptor() {
    checkOpen();
    if (byteSize == 0) {
      throw Sharing.cannot(this, "an empty buffer has no memory");
    }
    hold();
    try {
      return lifetime.descriptor(this);
    } finally {
      unhold();
    }
  }

  public final void close() {
    if (root == null) {
      lifetime.close();
    }
  }

  /** The current stream of the buffer's device, for an operation that waits. */
  private OpenStream current() {
    checkOpen();
    return device().cuda().currentStream(device()).core();
  }

  static BufferBase base(Buffer buffer) {
    return switch (buffer) {
      case DeviceBuffer device -> device;
      case ManagedBuffer managed -> managed;
      case PinnedBuffer pinned -> pinned;
    };
  }

  final void checkOpen() {
    on().session().checkOpen();
    lifetime.checkOpen();
  }

  /**
   * Keeps the memory from being freed until {@link #unhold}, for a call of the driver or a copy of
   * some bytes, but not for a wait for a device.
   *
   * @throws IllegalStateException if it, or its Cuda, is closed
   */
  final void hold() {
    on().session().checkOpen();
    lifetime.hold();
  }

  /** The buffer is not forgotten before this. */
  final void unhold() {
    try {
      lifetime.unhold();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  final String text(String kind) {
    return "%s%s of %d bytes at 0x%x on %s%s"
        .formatted(
            root == null ? "" : "slice of a ",
            kind,
            byteSize,
            address,
            device(),
            isClosed() ? " (closed)" : "");
  }
}
