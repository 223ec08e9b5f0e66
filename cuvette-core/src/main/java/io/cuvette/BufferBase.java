package io.cuvette;

import io.cuvette.internal.async.CurrentPool;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.block.PlainExport;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.transfer.FillValue;
import io.cuvette.internal.transfer.HostTransfers;
import io.cuvette.internal.transfer.Staging;
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

  /**
   * The {@link Block}, or the {@link Memory} that has it, once that was wanted; any thread's is as
   * good. One field for both spares each buffer 8 bytes.
   */
  private Object held;

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
    Checks.part(offset, bytes, of.byteSize());
    of.block().checkOpen();
    this.address = bytes == 0 ? 0 : of.address + offset;
    this.byteSize = bytes;
    this.stream = of.stream;
    this.root = of;
    this.held = of.block();
  }

  /** Tells the block; {@link Ending#opened} follows. */
  final void attach(Block owned) {
    this.held = owned;
  }

  final Block block() {
    Object now = held; // once: another thread may want the memory meanwhile
    return now instanceof Memory known ? known.block() : (Block) now;
  }

  abstract BufferKind kind();

  /** The memory as the engine uses it. */
  Memory memory() {
    Object now = held;
    if (now instanceof Memory known) {
      return known;
    }
    Memory made = new Memory(this, kind(), (Block) now, address, byteSize, stream, root == null);
    held = made;
    return made;
  }

  /** The memory of what code of the user gave, which can be null. */
  static @Nullable Memory memoryOf(@Nullable Buffer given) {
    return given == null ? null : base(given).memory();
  }

  /** An argument of a launch as the engine takes it. */
  static @Nullable Object argument(@Nullable Object given) {
    return given instanceof Buffer buffer ? base(buffer).memory() : given;
  }

  /** Itself as the public type. */
  abstract Buffer asBuffer();

  /** The buffer that owns the memory: this, or what this is a slice of. */
  final BufferBase whole() {
    return root == null ? this : root.whole();
  }

  /** Whether it is memory that nobody may write through the buffer. */
  boolean isReadOnly() {
    return false;
  }

  /** The host's side of the memory, for the library's own use; null if the host has none. */
  @Nullable MemorySegment hostMemory() {
    return null;
  }

  /** Where a segment of this memory that users have seen is; {@link #address} if there is none. */
  long hostAddress() {
    return address;
  }

  /**
   * Implements {@link Buffer#address()}.
   *
   * @return the address
   */
  public final long address() {
    return address;
  }

  /**
   * Implements {@link Buffer#byteSize()}.
   *
   * @return the size in bytes
   */
  public long byteSize() {
    return byteSize;
  }

  /**
   * Implements {@link Buffer#blockBytes()}.
   *
   * @return the size of the block in bytes
   */
  public final long blockBytes() {
    return block().blockBytes();
  }

  /**
   * Implements {@link Buffer#device()}.
   *
   * @return the device
   */
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

  /**
   * Implements {@link Buffer#stream()}.
   *
   * @return the stream
   */
  public final CudaStream stream() {
    return CudaStream.of(stream);
  }

  /**
   * Implements {@link Buffer#isClosed()}.
   *
   * @return whether it is closed
   */
  public final boolean isClosed() {
    return block().ended();
  }

  /**
   * Implements {@link Buffer#copyFrom(Buffer)}.
   *
   * @param source the buffer or segment that is read
   */
  public final void copyFrom(Buffer source) {
    Objects.requireNonNull(source, "source");
    Transfers.copy(memory(), base(source).memory(), current());
  }

  /**
   * Implements {@link Buffer#copyFrom(Buffer, CudaStream)}.
   *
   * @param source the buffer or segment that is read
   * @param stream the stream of the work
   */
  public final void copyFrom(Buffer source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    Transfers.copyAsync(memory(), base(source).memory(), CudaStream.coreOf(stream));
  }

  /**
   * Implements {@link Buffer#copyTo(Buffer)}.
   *
   * @param target the buffer or segment that is written
   */
  public final void copyTo(Buffer target) {
    Objects.requireNonNull(target, "target");
    target.copyFrom(asBuffer());
  }

  /**
   * Implements {@link Buffer#copyTo(Buffer, CudaStream)}.
   *
   * @param target the buffer or segment that is written
   * @param stream the stream of the work
   */
  public final void copyTo(Buffer target, CudaStream stream) {
    Objects.requireNonNull(target, "target");
    target.copyFrom(asBuffer(), stream);
  }

  /**
   * Implements {@link Buffer#copyFrom(MemorySegment)}.
   *
   * @param source the buffer or segment that is read
   */
  public final void copyFrom(MemorySegment source) {
    Objects.requireNonNull(source, "source");
    HostTransfers.copyIn(memory(), source, current(), staging());
  }

  /**
   * Implements {@link Buffer#copyFrom(MemorySegment, CudaStream)}.
   *
   * @param source the buffer or segment that is read
   * @param stream the stream of the work
   */
  public final void copyFrom(MemorySegment source, CudaStream stream) {
    Objects.requireNonNull(source, "source");
    HostTransfers.copyInAsync(memory(), source, CudaStream.coreOf(stream), staging());
  }

  /**
   * Implements {@link Buffer#copyTo(MemorySegment)}.
   *
   * @param target the buffer or segment that is written
   */
  public final void copyTo(MemorySegment target) {
    Objects.requireNonNull(target, "target");
    HostTransfers.copyOut(memory(), target, current(), staging());
  }

  /**
   * Implements {@link Buffer#copyTo(MemorySegment, CudaStream)}.
   *
   * @param target the buffer or segment that is written
   * @param stream the stream of the work
   */
  public final void copyTo(MemorySegment target, CudaStream stream) {
    Objects.requireNonNull(target, "target");
    HostTransfers.copyOutAsync(memory(), target, CudaStream.coreOf(stream), staging());
  }

  /**
   * Implements {@link Buffer#fill(byte)}.
   *
   * @param value the value
   */
  public final void fill(byte value) {
    fill(FillValue.ofByte(value));
  }

  /**
   * Implements {@link Buffer#fill(byte, CudaStream)}.
   *
   * @param value the value
   * @param stream the stream of the work
   */
  public final void fill(byte value, CudaStream stream) {
    fill(FillValue.ofByte(value), stream);
  }

  /**
   * Implements {@link Buffer#fill(int)}.
   *
   * @param value the value
   */
  public final void fill(int value) {
    fill(FillValue.ofByte(value));
  }

  /**
   * Implements {@link Buffer#fill(int, CudaStream)}.
   *
   * @param value the value
   * @param stream the stream of the work
   */
  public final void fill(int value, CudaStream stream) {
    fill(FillValue.ofByte(value), stream);
  }

  /**
   * Implements {@link Buffer#fillShorts(short)}.
   *
   * @param value the value
   */
  public final void fillShorts(short value) {
    fill(FillValue.ofShort(value));
  }

  /**
   * Implements {@link Buffer#fillShorts(short, CudaStream)}.
   *
   * @param value the value
   * @param stream the stream of the work
   */
  public final void fillShorts(short value, CudaStream stream) {
    fill(FillValue.ofShort(value), stream);
  }

  /**
   * Implements {@link Buffer#fillInts(int)}.
   *
   * @param value the value
   */
  public final void fillInts(int value) {
    fill(FillValue.ofInt(value));
  }

  /**
   * Implements {@link Buffer#fillInts(int, CudaStream)}.
   *
   * @param value the value
   * @param stream the stream of the work
   */
  public final void fillInts(int value, CudaStream stream) {
    fill(FillValue.ofInt(value), stream);
  }

  /**
   * Implements {@link Buffer#recordUse(CudaStream)}.
   *
   * @param stream the stream of the work
   */
  public final void recordUse(CudaStream stream) {
    CudaStream.coreOf(stream).checkOf(on().session());
    block().hold();
    Memory memory = memory();
    try {
      block().useIn(stream.state, stream.state.capture());
      BlockReports.usedElsewhere(memory, stream.state);
    } finally {
      memory.unhold();
    }
  }

  /**
   * Implements {@link Buffer#isMapped()}.
   *
   * @return whether it is memory of another process
   */
  public final boolean isMapped() {
    return block().isMapped();
  }

  /**
   * Implements {@link Buffer#descriptor()}.
   *
   * @return the descriptor
   */
  public final BufferDescriptor descriptor() {
    checkOpen();
    Memory memory = memory();
    if (byteSize() == 0) {
      throw PlainExport.cannot(memory, "an empty buffer has no memory");
    }
    memory.hold();
    try {
      return block().descriptor(memory);
    } finally {
      memory.unhold();
    }
  }

  /** Implements {@link Buffer#close()}. */
  public final void close() {
    if (root == null) {
      block().close(this);
    }
  }

  /** Page-locked memory for copies that go through it. */
  final Staging staging() {
    return device().cuda().staging();
  }

  /** Memory of a stream's device, in its order. */
  private static Memory scratch(long bytes, OpenStream stream) {
    DriverPools pools = CudaStream.of(stream).device().cuda().engine().driverPools();
    return BufferKind.DEVICE.memory(CurrentPool.allocate(pools, BufferKind.DEVICE, bytes, stream));
  }

  private void fill(FillValue value) {
    Transfers.fill(memory(), value, current(), BufferBase::scratch);
  }

  private void fill(FillValue value, CudaStream stream) {
    Transfers.fillAsync(memory(), value, CudaStream.coreOf(stream), BufferBase::scratch);
  }

  /** The current stream of the buffer's device, for an operation that waits. */
  final OpenStream current() {
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
    block().checkOpen();
  }

  final String text(String kind) {
    return "%s%s of %d bytes at 0x%x on %s%s"
        .formatted(
            root == null ? "" : "slice of a ",
            kind,
            byteSize(),
            address,
            device(),
            isClosed() ? " (closed)" : "");
  }
}
