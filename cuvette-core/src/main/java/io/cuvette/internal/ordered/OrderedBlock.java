package io.cuvette.internal.ordered;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.block.Addresses;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.block.PlainExport;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import org.jspecify.annotations.Nullable;

/** The end of memory from a pool of the driver: it is freed in order of its stream. */
public final class OrderedBlock extends Block {
  private final OrderedMemory memory;
  public final Device device;
  public final long address;
  private final long blockBytes;
  private final long requestedBytes;

  /** The handle by which others import it, once requested; the same each time. */
  private volatile byte @Nullable [] exported;

  /** Whether advice was set or pages were moved for this memory, which lasts until its end. */
  private volatile boolean advised;

  /** Its neighbours among those alive. */
  public @Nullable OrderedBlock older;

  public @Nullable OrderedBlock newer;

  /** Whether the driver has got it back, or may have. For who gives it back. */
  private boolean isFreed;

  /** Whether its buffer is closed and it is kept for another; guarded by the memory's lock. */
  public boolean isIdle;

  public OrderedBlock(
      Face buffer,
      OrderedMemory memory,
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
  public int depth() {
    return 1;
  }

  @Override
  public BufferDescriptor descriptor(Memory part) {
    BufferDescriptor.Kind kind = memory.sharedAs();
    if (kind == null) {
      throw PlainExport.cannot(part, "its pool is not IPC-enabled");
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
  public boolean deniesAccess(Device other) {
    long pool = memory.poolOf(this);
    return pool == 0 || Addresses.deniesAccess(other, pool);
  }

  public boolean isOf(OrderedMemory other) {
    return memory == other;
  }

  /** Whether other processes may know the memory: it must end when its buffer does. */
  public boolean isExported() {
    return exported != null;
  }

  @Override
  public void advised() {
    advised = true;
  }

  /** Whether the next owner would find the memory as the driver gives it. */
  public boolean isAsGiven() {
    return !advised;
  }

  @Override
  public long blockBytes() {
    return blockBytes;
  }

  @Override
  public long requestedBytes() {
    return requestedBytes;
  }

  @Override
  public String describe() {
    return "stream-ordered buffer of %d bytes at 0x%x".formatted(blockBytes, address);
  }

  /** Frees the memory, but for a second time. */
  public void free(Runnable call) {
    if (!isFreed) {
      Once.free(call, () -> isFreed = true);
    }
  }

  @Override
  public void giveBack() {
    memory.free(this);
  }
}
