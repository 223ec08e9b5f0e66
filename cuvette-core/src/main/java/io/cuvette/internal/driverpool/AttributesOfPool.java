package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.internal.base.CudaVersion;
import java.lang.ref.Reference;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/** The attributes of a pool of the driver, which is queried each time. Thread-safe. */
public final class AttributesOfPool {
  private static final int BYTES_SINCE = 11030;

  private final DriverPool pool;

  @SuppressWarnings("UnusedVariable") // holding it is its use
  private final @Nullable Object owner;

  public AttributesOfPool(DriverPool pool) {
    this(pool, null);
  }

  /**
   * For a user, who may keep nothing else.
   *
   * @param owner closes the pool when nobody can reach it any more
   */
  public AttributesOfPool(DriverPool pool, @Nullable Object owner) {
    this.pool = pool;
    this.owner = owner;
  }

  /** What the pool holds, in bytes. */
  public long reserved() {
    return get(MemPoolAttribute.RESERVED_MEM_CURRENT);
  }

  /** What of it is in use, in bytes. */
  public long used() {
    return get(MemPoolAttribute.USED_MEM_CURRENT);
  }

  /** Has the pool give nothing back by itself. */
  public void keepAll() {
    set(MemPoolAttribute.RELEASE_THRESHOLD, MemPoolAttribute.KEEP_ALL);
  }

  /** An attribute now; for a closed pool what it was last, if that is known. */
  public long get(int attribute) {
    try {
      return ask(driver -> {
        checkVersion(driver, "cuMemPoolGetAttribute", attribute);
        return driver.pools().memPoolGetAttribute(pool.handle(), attribute);
      });
    } catch (IllegalStateException e) { // it is closed
      Long last = pool.last(attribute);
      if (last == null) {
        throw e;
      }
      return last;
    }
  }

  public void set(int attribute, long value) {
    ask(driver -> {
      checkVersion(driver, "cuMemPoolSetAttribute", attribute);
      driver.pools().memPoolSetAttribute(pool.handle(), attribute, value);
      return 0;
    });
  }

  /** For a pool of another process a driver (580) reports nothing but INVALID_VALUE. */
  private long ask(ToLongFunction<CudaDriver> question) {
    try {
      return pool.ask(question);
    } catch (CudaException e) {
      if (!(pool instanceof ImportedPool) || e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
      throw e.explained(
          "%s was imported: its process alone can ask about it and set it".formatted(pool));
    } finally {
      Reference.reachabilityFence(this); // and so the owner, with which the pool is closed
    }
  }

  /** An older driver would report only INVALID_VALUE. */
  private void checkVersion(CudaDriver driver, String call, int attribute) {
    if (attribute >= MemPoolAttribute.RESERVED_MEM_CURRENT
        && driver.devices().driverGetVersion() < BYTES_SINCE) {
      throw new CudaException(
          CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
          "%s(%s, attribute=%d)".formatted(call, pool, attribute),
          CudaVersion.tooOld(driver.devices().driverGetVersion(), BYTES_SINCE));
    }
  }
}
