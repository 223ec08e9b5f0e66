package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.internal.base.Once;

/** A pool that is destroyed here, once it is closed and nobody needs it. Thread-safe. */
public abstract sealed class OwnedPool extends DriverPool permits MadePool, ImportedPool {
  private final Once destroyed = new Once();

  OwnedPool(DriverPools pools, long handle) {
    super(pools, handle);
  }

  @Override
  public final boolean isOwned() {
    return !isClosed();
  }

  @Override
  final void letGo() {
    pools().retire(this);
  }

  /** Whether a device has access that was given to it and can be taken away. */
  abstract boolean isGuest(int device);

  /** Whether it can be destroyed, once closed; frees what waited for streams that are done. */
  final boolean isUnused() {
    memory().settle();
    // A borrower reports its frees before it is closed.
    return isUnneeded() && !pools().isBorrowed(this) && memory().freesAreDone();
  }

  /** The driver gives a recycled handle the access its predecessor had, so that is taken first. */
  final void destroy() {
    int[] guests = destroyed.isDone() ? new int[0] : accessors(this::isGuest).toArray();
    if (guests.length > 0) {
      try {
        revoke(guests);
      } catch (CudaException e) {
        revokeWhatCanBe(guests);
      }
    }
    destroyWithItsAccess();
  }

  /** For a Cuda that ends, and a driver that does not let access be taken. */
  void destroyWithItsAccess() {
    destroyed.free(() ->
        pools().mappings().freeing(() -> session().driver().pools().memPoolDestroy(handle())));
  }

  /** Closes what it was made of, if the driver keeps the pool. */
  void closeOrigin() {}

  private void revoke(int... guests) {
    session()
        .driver()
        .pools()
        .memPoolSetAccess(handle(), MemLocationType.DEVICE, guests, MemAccessFlags.NONE);
  }

  /** A pool that was imported as another device's has an owner that cannot lose its access. */
  private void revokeWhatCanBe(int[] guests) {
    for (int guest : guests) {
      try {
        revoke(guest);
      } catch (CudaException e) {
        if (e.status() != CudaStatus.INVALID_VALUE && e.status() != CudaStatus.INVALID_DEVICE) {
          throw e;
        }
      }
    }
  }
}
