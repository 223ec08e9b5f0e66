package io.cuvette;

import io.cuvette.internal.base.Checks;
import io.cuvette.internal.block.BlockLifetime;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.block.Sharing;
import io.cuvette.internal.lifetime.Lifetime;
import io.cuvette.internal.ordered.AsyncMemory;
import io.cuvette.internal.ordered.DriverPools;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.OpenStream;
import io.cuvette.internal.transfer.FillValue;
import io.cuvette.internal.transfer.HostTransfers;
import io.cuvette.internal.transfer.Transfers;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What the three kinds of buffers share. */
abstract class BufferBase implements Face {
  private final long address;
  private final long byteSize;
  private final OpenStream stream;

  /** The buffer this is a slice of: it stays reachable as long as its slices. */
  private final @Nullable BufferBase root;

  private BlockLifetime lifetime;

  /** A buffer that owns memory; {@link #attach} follows. */
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

  /** Tells the block; {@link Lifetime#opened} follows. */
  final void attach(BlockLifetime owned) {
    this.lifetime = owned;
  }

  final BlockLifetime lifetime() {
    return lifetime;
  }

  abstract BufferKind kind();

  /** The memory as the engine uses it. */
  final Memory memory() {
    return new Memory(this, kind(), lifetime, address, byteSize, stream, root == null);
  }

  /** The memory of what code of the user gave, which can be null. */
  static @Nullable Memory memoryOf(@Nullable Buffer given) {
    return given == null ? null : base(given).memory();
  }

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
    Transfers.copy(memory(), base(source).memory(), current());
  }

  public final void copyFrom(Buffer source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    Transfers.copyAsync(memory(), base(source).memory(), CudaStream.coreOf(stream));
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
    HostTransfers.copyIn(memory(), source, current(), pinned());
  }

  public final void copyFrom(MemorySegment source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    HostTransfers.copyInAsync(memory(), source, CudaStream.coreOf(stream));
  }

  public final void copyTo(MemorySegment target) {
    Objects.requireNonNull(target, "target");
    HostTransfers.copyOut(memory(), target, current(), pinned());
  }

  public final void copyTo(MemorySegment target, CudaStream stream) {
    Objects.requireNonNull(target, "target");
    HostTransfers.copyOutAsync(memory(), target, CudaStream.coreOf(stream));
  }

  public final void fill(byte value) {
    fill(FillValue.ofByte(value));
  }

  public final void fill(byte value, CudaStream stream) {
    fill(FillValue.ofByte(value), stream);
  }

  public final void fill(int value) {
    fill(FillValue.ofByte(value));
  }

  public final void fill(int value, CudaStream stream) {
    fill(FillValue.ofByte(value), stream);
  }

  public final void fillShorts(short value) {
    fill(FillValue.ofShort(value));
  }

  public final void fillShorts(short value, CudaStream stream) {
    fill(FillValue.ofShort(value), stream);
  }

  public final void fillInts(int value) {
    fill(FillValue.ofInt(value));
  }

  public final void fillInts(int value, CudaStream stream) {
    fill(FillValue.ofInt(value), stream);
  }

  public final void recordUse(CudaStream stream) {
    CudaStream.coreOf(stream).checkOf(on().session());
    lifetime.hold();
    Memory memory = memory();
    try {
      lifetime.useIn(stream.state);
      BlockReports.usedElsewhere(memory, stream.state);
    } finally {
      memory.unhold();
    }
  }

  public final boolean isMapped() {
    return lifetime.isMapped();
  }

  public final BufferDescriptor descriptor() {
    checkOpen();
    Memory memory = memory();
    if (byteSize == 0) {
      throw Sharing.cannot(memory, "an empty buffer has no memory");
    }
    memory.hold();
    try {
      return new BufferDescriptor(lifetime.descriptor(memory));
    } finally {
      memory.unhold();
    }
  }

  public final void close() {
    if (root == null) {
      lifetime.close();
    }
  }

  /** Page-locked memory for copies that go through it. */
  private ChunkSource pinned() {
    return new PinnedChunks(device().cuda()::allocatePinned);
  }

  /** Memory of a stream's device, in its order. */
  private static Memory scratch(long bytes, OpenStream stream) {
    DriverPools pools = CudaStream.of(stream).device().cuda().engine().driverPools();
    return BufferKind.DEVICE.memory(AsyncMemory.allocate(pools, BufferKind.DEVICE, bytes, stream));
  }

  private void fill(FillValue value) {
    Transfers.fill(memory(), value, current(), BufferBase::scratch);
  }

  private void fill(FillValue value, CudaStream stream) {
    Transfers.fillAsync(memory(), value, CudaStream.coreOf(stream), BufferBase::scratch);
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
