package io.cuvette;

import org.jspecify.annotations.Nullable;

/** The end of memory from a pool of the driver: it is freed in order of its stream. */
final class StreamOrderedLifetime extends BlockLifetime {
  private final StreamOrderedMemory memory;
  final Device device;
  final long address;
  private final long blockBytes;
  private final long requestedBytes;

  /** What others import it by, once asked for; the same each time. */
  private volatile byte @Nullable [] exported;

  /**
   * Whether the driver was told or moved something about this memory, which lasts until its end.
   */
  private volatile boolean advised;

  /** Its neighbours among those alive. */
  @Nullable StreamOrderedLifetime older;

  @Nullable StreamOrderedLifetime newer;

  /** Whether the driver has got it back, or may have. For who gives it back. */
  private boolean isFreed;

  /** Whether its buffer is closed and it is kept for another; guarded by the memory's lock. */
  boolean isIdle;

  StreamOrderedLifetime(
      Face buffer,
      StreamOrderedMemory memory,
      long address,
      long bytes,
      long blockBytes,
      OpenStream stream) {
    super(
        buffer,
        stream.on().session().leaks().queue,
        stream.on().session().leaks().site(),
        stream.state);
    this.memory = memory;
    this.device = stream.on();
    this.address = address;
    this.blockBytes = blockBytes;
    this.requestedBytes = bytes;
  }

  @Override
  boolean isOfDriverPool() {
    return true;
  }

  @Override
  int depth() {
    return 1;
  }

  @Override
  BufferDescriptor descriptor(Memory part) {
    BufferDescriptor.Kind kind = memory.sharedAs();
    if (kind == null) {
      throw Sharing.cannot(part, "its pool is not IPC-enabled");
    }
    byte[] known = exported;
    if (known == null) {
      known = device.context().sharing().memPoolExportPointer(address);
      exported = known;
    }
    return new BufferDescriptor(
        kind,
        part.address() - address,
        part.byteSize(),
        device.session().process(),
        device.uuid(),
        known);
  }

  @Override
  boolean keepsOut(Device other) {
    long pool = memory.poolOf(this);
    return pool == 0 || Addresses.keepsOut(other, pool);
  }

  boolean isOf(StreamOrderedMemory other) {
    return memory == other;
  }

  /** Whether other processes may know the memory: it must end when its buffer does. */
  boolean isExported() {
    return exported != null;
  }

  @Override
  void advised() {
    advised = true;
  }

  /** Whether the next owner would find the memory as the driver gives it. */
  boolean isAsGiven() {
    return !advised;
  }

  @Override
  long blockBytes() {
    return blockBytes;
  }

  @Override
  long requestedBytes() {
    return requestedBytes;
  }

  @Override
  String describe() {
    return "stream-ordered buffer of %d bytes at 0x%x".formatted(blockBytes, address);
  }

  /** Frees the memory, but for a second time. */
  void free(Runnable call) {
    if (!isFreed) {
      Once.free(call, () -> isFreed = true);
    }
  }

  @Override
  void giveBack() {
    memory.free(this);
  }
}
