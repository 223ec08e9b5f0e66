package io.cuvette.sim;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** An allocation as its pool sees it. Guarded by the driver's lock. */
final class PoolUse {
  final SimPool pool;

  /** Bytes of the pool that it uses. */
  final long byteSize;

  private @Nullable SimOp allocation;

  PoolUse(SimPool pool, long byteSize) {
    this.pool = pool;
    this.byteSize = byteSize;
  }

  void allocated(SimOp op) {
    allocation = op;
  }

  /** The operation that allocates: only work behind it may use the memory. */
  SimOp allocation() {
    return Objects.requireNonNull(allocation);
  }
}
