package io.cuvette.internal.driverpool;

import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import org.jspecify.annotations.Nullable;

/** A pool of another process, of which the driver reports nothing here. Thread-safe. */
public final class ImportedPool extends OwnedPool {
  private final @Nullable Device home;

  /** Kept as long as the pool. */
  private final PoolOrigin origin;

  private ImportedPool(DriverPools pools, long handle, @Nullable Device home, PoolOrigin origin) {
    super(pools, handle);
    this.home = home;
    this.origin = origin;
  }

  /**
   * A pool of another process, whose origin it has from here on unless this fails.
   *
   * @param home the device the memory is of, null if it is of none
   */
  public static DriverPool imported(DriverPools pools, @Nullable Device home, PoolOrigin from) {
    Session session = pools.session();
    session.checkOpen();
    return session
        .gate()
        .make(() -> {
          pools.poll();
          long handle = from.open(session.driver());
          try {
            ImportedPool pool = new ImportedPool(pools, handle, home, from);
            pool.register();
            return pool;
          } catch (OutOfMemoryError e) {
            session.driver().pools().memPoolDestroy(handle);
            throw e;
          }
        });
  }

  /** What distinguishes it from others, whatever it claims to be. */
  public PoolOrigin origin() {
    return origin;
  }

  @Override
  boolean isGuest(int device) {
    return home == null || home.id() != device;
  }

  @Override
  boolean canBeAsked() {
    return false;
  }

  @Override
  public void trimKept() {} // it is its process's

  @Override
  void destroyWithItsAccess() {
    super.destroyWithItsAccess();
    origin.close();
  }

  @Override
  void closeOrigin() {
    origin.close();
  }
}
