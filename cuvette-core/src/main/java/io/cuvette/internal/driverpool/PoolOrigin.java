package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.session.PeerHandles;

/**
 * What a pool of another process was imported from: a descriptor that stays open as long as the
 * pool. Two imports of one file have the same identity, whatever UUID their handles claim.
 * Immutable.
 */
public final class PoolOrigin {
  private final PoolHandle handle;
  private final Object identity;

  private PoolOrigin(PoolHandle handle, Object identity) {
    this.handle = handle;
    this.identity = identity;
  }

  /** What a handle is of, with a descriptor of its own. */
  public static PoolOrigin of(PoolHandle handle, DriverPools known) {
    PoolHandle own = handle.duplicate();
    try {
      PoolOrigin same = known.importedFrom(own);
      return new PoolOrigin(own, same == null ? new Object() : same.identity);
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, own::close);
      throw e;
    }
  }

  public Object identity() {
    return identity;
  }

  public boolean isOf(PoolHandle other) {
    return handle.isSamePool(other);
  }

  /** Has a driver import the pool. */
  public long open(CudaDriver driver) {
    return handle.use(descriptor ->
        driver
            .sharing()
            .memPoolImportFromShareableHandle(PeerHandles.checkedPool(driver, descriptor)));
  }

  /** Closes the descriptor of a pool that is gone. */
  public void close() {
    handle.close();
  }
}
