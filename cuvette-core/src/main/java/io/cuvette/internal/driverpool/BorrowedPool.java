package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.session.Session;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Somebody else's pool, who keeps it as long as it is in use here. Thread-safe. */
public final class BorrowedPool extends DriverPool {
  /** Which pool is now the one that was borrowed as some place's; null if it was not. */
  private final @Nullable LongSupplier current;

  /** Whether the release threshold was raised here, and not restored yet. */
  private final AtomicBoolean raised = new AtomicBoolean();

  private BorrowedPool(DriverPools pools, long handle, @Nullable LongSupplier current) {
    super(pools, handle);
    this.current = current;
  }

  /** The pool of a location, as the driver reports it. */
  public static DriverPool borrow(DriverPools pools, LongSupplier current) {
    return borrow(pools, pools.session().ask(_ -> current.getAsLong()), current, false);
  }

  /**
   * Borrows a pool.
   *
   * @param current which pool is now the one of some place; null if it was given by its handle
   * @param keeping whether it gives nothing back by itself as long as it is open here
   */
  public static DriverPool borrow(
      DriverPools pools, long handle, @Nullable LongSupplier current, boolean keeping) {
    Session session = pools.session();
    session.checkOpen();
    return session
        .gate()
        .make(() -> {
          BorrowedPool pool = new BorrowedPool(pools, handle, current);
          pool.register();
          if (keeping) {
            pool.keepAll();
          }
          return pool;
        });
  }

  private void keepAll() {
    if (pools().isImportedHere(this)) {
      return;
    }
    try {
      pools().thresholds().raise(session().driver(), handle());
      raised.set(true);
    } catch (RuntimeException | OutOfMemoryError e) {
      Failures.runAfter(e, this::close);
      throw e;
    }
  }

  /** Only while its threshold is raised here, and down to what it keeps without that. */
  @Override
  public void trimKept() {
    trimIfThere(raised::get, () -> pools().thresholds().before(handle()));
  }

  @Override
  boolean canBeAsked() {
    return pools().isMadeHere(this) || (current != null && current.getAsLong() == handle());
  }

  /** Restores the release threshold. */
  @Override
  void closing() {
    if (raised.getAndSet(false)) {
      unlessGone(this::restore);
    }
  }

  private void restore() {
    try {
      restoreOrForget();
    } catch (CudaException e) {
      Failures.runAfter(e, this::restoreAtLast);
      throw e;
    }
  }

  private void restoreAtLast() {
    try {
      restoreOrForget();
    } catch (CudaException e) {
      pools().thresholds().forget(handle());
      throw e;
    }
  }

  private void restoreOrForget() {
    if (current == null || canBeAsked()) {
      pools().thresholds().restore(session().driver(), handle());
    } else {
      pools().thresholds().forget(handle());
    }
  }
}
