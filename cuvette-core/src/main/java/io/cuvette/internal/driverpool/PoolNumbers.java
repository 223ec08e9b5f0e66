package io.cuvette.internal.driverpool;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import org.jspecify.annotations.Nullable;

/** The values of all attributes of a memory pool of the driver at one moment. Immutable. */
public final class PoolNumbers {
  private static final int FIRST = 1;
  private static final int LAST = 8;

  private final @Nullable Long[] values = new @Nullable Long[LAST + 1];

  private PoolNumbers() {}

  /** Queries all, and leaves out what the driver does not report. */
  public static PoolNumbers of(CudaDriver driver, long pool) {
    PoolNumbers numbers = new PoolNumbers();
    for (int attribute = FIRST; attribute <= LAST; attribute++) {
      try {
        numbers.values[attribute] = driver.pools().memPoolGetAttribute(pool, attribute);
      } catch (CudaException e) {
        // An older driver, or a context that was lost: nobody has queried it yet.
      }
    }
    return numbers;
  }

  /** The value; null if the driver did not report it. */
  public @Nullable Long get(int attribute) {
    return values[attribute];
  }
}
