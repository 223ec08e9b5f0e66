package io.cuvette.sim;

import org.jspecify.annotations.Nullable;

/** An allocation as its pool sees it. Guarded by the driver's lock. */
final class PoolUse {
  final SimPool pool;

  /** Bytes of the pool that it uses. */
  final long byteSize;

  private @Nullable SimOp allocation;
  private SharedTable.@Nullable Entry exported;

  PoolUse(SimPool pool, long byteSize) {
    this.pool = pool;
    this.byteSize = byteSize;
  }

  void allocated(SimOp op) {
    allocation = op;
  }

  /**
   * Whether the operation that allocates is done: only work behind it may use the memory. That of
   * another process is not known here.
   */
  boolean isAllocated() {
    return allocation == null || allocation.isDone();
  }

  /** What others import the allocation by; null if nobody does. */
  SharedTable.@Nullable Entry exported() {
    return exported;
  }

  void exported(SharedTable.Entry entry) {
    exported = entry;
  }

  /** The program freed the block: nobody can import it any more. */
  void unshare(SimBlock block) {
    if (exported != null && pool.shared != null) {
      if (pool.isImported()) {
        pool.shared.forget(exported, block);
      } else {
        pool.shared.remove(exported);
      }
      exported = null;
    }
  }
}
