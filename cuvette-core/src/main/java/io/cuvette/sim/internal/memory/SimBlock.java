package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** One allocation: where it is, and its bytes. Guarded by the driver's lock. */
public abstract sealed class SimBlock permits DeviceBlock, HostBlock, VirtualBlock {
  public final SimDevice device;
  public final long address;
  public final long byteSize;
  public final long id;
  private boolean live = true;
  private boolean retired;
  private boolean imported;
  private BooleanSupplier freedElsewhere = () -> false;
  private @Nullable BlockUse use;

  public SimBlock(SimDevice device, long address, long byteSize, long id) {
    this.device = device;
    this.address = address;
    this.byteSize = byteSize;
    this.id = id;
  }

  /** Copies bytes of this block into host memory. */
  public abstract void read(long offset, MemorySegment target);

  /** Copies host memory into this block. */
  public abstract void write(long offset, MemorySegment source);

  /** Fills with a 4-byte pattern, whose phase is that of the block's start. */
  public abstract void fill(long offset, long bytes, int pattern);

  public final boolean isLive() {
    return live;
  }

  public final void die() {
    live = false;
  }

  /** Says that the memory is that of another process; before it is counted. */
  public final void markImported() {
    imported = true;
  }

  /** Sets the query for whether the process of the memory has freed it. */
  public final void freedElsewhere(BooleanSupplier freed) {
    freedElsewhere = freed;
  }

  /**
   * Whether the process of the memory has freed it: what was written is not read any more, as if
   * others had that memory now. No error, for a process that is not trusted says so.
   */
  public final boolean isLost() {
    return freedElsewhere.getAsBoolean();
  }

  /** Whether the memory is that of another process: it is not counted here. */
  public final boolean isImported() {
    return imported;
  }

  /** What a pool or a graph knows about the block; null for memory that is in none. */
  public final @Nullable BlockUse use() {
    return use;
  }

  public final void use(BlockUse pooled) {
    use = pooled;
  }

  /** Says that the program freed the block, though not when; false if it did before. */
  public final boolean retire() {
    boolean first = !retired;
    retired = true;
    return first;
  }

  /** Whether the program freed the block; work queued before that may still use it. */
  public final boolean isRetired() {
    return retired;
  }

  /** Refuses a block that the program freed. */
  public final void checkNotRetired() {
    if (retired) {
      throw SimRefusal.invalidValue("address: 0x%x was freed already".formatted(address));
    }
  }

  /** What the device finds when an operation touches memory that was freed since it was queued. */
  public final void checkLive() {
    if (!live) {
      throw new SimRefusal(
          CudaStatus.ILLEGAL_ADDRESS,
          "0x%x: %d bytes that were freed before the queued operation ran"
              .formatted(address, byteSize));
    }
    if (use != null && !use.isAllocated()) {
      throw new SimRefusal(
          CudaStatus.ILLEGAL_ADDRESS,
          "0x%x: %d bytes that are allocated later in stream order".formatted(address, byteSize));
    }
  }

  @Override
  public String toString() {
    return "0x%x: %d bytes, device %d".formatted(address, byteSize, device.index);
  }
}
