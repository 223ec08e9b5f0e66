package io.cuvette.sim.internal.pool;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.memory.BlockUse;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.share.SharedTable;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** An allocation as its pool sees it. Guarded by the driver's lock. */
public final class PoolUse implements BlockUse {
  public final SimPool pool;

  /** Bytes of the pool that it uses. */
  public final long byteSize;

  private @Nullable SimOp allocation;
  private @Nullable Extent place;
  private SharedTable.@Nullable Entry exported;

  /** What cannot be imported any more, but is still there. */
  private SharedTable.@Nullable Entry withdrawn;

  public PoolUse(SimPool pool, long byteSize) {
    this.pool = pool;
    this.byteSize = byteSize;
  }

  /** What its pool knows about a block; null if it is of none. */
  public static @Nullable PoolUse of(SimBlock block) {
    return block.use() instanceof PoolUse pooled ? pooled : null;
  }

  public void allocated(Extent taken, SimOp op) {
    place = taken;
    allocation = op;
  }

  /** The bytes of the pool that it has; not of a pool of another process. */
  public Extent place() {
    return Objects.requireNonNull(place);
  }

  /**
   * Whether the operation that allocates is done: only work behind it may use the memory. That of
   * another process is not known here.
   */
  @Override
  public boolean isAllocated() {
    return allocation == null || allocation.isDone();
  }

  @Override
  public int access(SimDevice device, long offset, long bytes) {
    return pool.access.of(device);
  }

  @Override
  public String kind() {
    return "pool";
  }

  /** The handle by which other processes import the allocation; null if it was not exported. */
  public SharedTable.@Nullable Entry exported() {
    return exported;
  }

  public void exported(SharedTable.Entry entry) {
    exported = entry;
  }

  /** Notes that the program freed the block: it cannot be imported any more. */
  public void unshare(SimBlock block) {
    if (exported != null && pool.shared != null) {
      if (pool.isImported()) {
        pool.shared.forget(exported, block);
      } else {
        pool.shared.remove(exported);
        withdrawn = exported;
      }
      exported = null;
    }
  }

  /** The memory is gone, for those too who imported it. */
  public void end() {
    if (withdrawn != null && pool.shared != null) {
      pool.shared.end(withdrawn);
      withdrawn = null;
    }
  }
}
