package io.cuvette.internal.driverpool;

import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.session.Session;

/** A pool that was made here. Thread-safe. */
public final class MadePool extends OwnedPool {
  private final PoolProperties properties;

  private MadePool(DriverPools pools, long handle, PoolProperties properties) {
    super(pools, handle);
    this.properties = properties;
  }

  private static MadePool create(DriverPools pools, PoolProperties properties) {
    Session session = pools.session();
    session.checkOpen();
    return session
        .gate()
        .make(() -> {
          pools.poll();
          long handle = session.driver().pools().memPoolCreate(properties);
          try {
            MadePool pool = new MadePool(pools, handle, properties);
            pool.register();
            return pool;
          } catch (OutOfMemoryError e) {
            session.driver().pools().memPoolDestroy(handle);
            throw e;
          }
        });
  }

  /**
   * A new pool that gives nothing back by itself: the driver's default would empty it at each
   * synchronisation.
   */
  public static DriverPool createKeeping(DriverPools pools, PoolProperties properties) {
    MadePool made = create(pools, properties);
    try {
      new AttributesOfPool(made).keepAll();
      return made;
    } catch (RuntimeException | OutOfMemoryError e) {
      made.abandon(e);
      throw e;
    }
  }

  @Override
  boolean isGuest(int device) {
    boolean atHome =
        properties.locationType() == MemLocationType.DEVICE && properties.locationId() == device;
    return properties.allocationType() != MemAllocationType.MANAGED && !atHome;
  }

  /** Also one that is closed, as long as its memory is in use: nobody else can trim it. */
  @Override
  public void trimKept() {
    trimIfThere(() -> !isClosed() || !memory().isEmpty(), () -> 0);
  }

  @Override
  boolean canBeAsked() {
    return true;
  }
}
