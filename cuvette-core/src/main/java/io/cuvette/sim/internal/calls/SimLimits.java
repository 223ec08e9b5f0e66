package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.Map;
import java.util.TreeMap;

/** The resource limits of a context, by CUlimit. Guarded by the driver's lock. */
public final class SimLimits {
  private static final int MAX_L2_FETCH_GRANULARITY = 5;
  private static final int PERSISTING_L2_CACHE_SIZE = 6;
  private static final long MAX_FETCH = 128;
  public static final long MAX_PERSISTING_L2 = 39_321_600;

  // Stack size, printf buffer, malloc heap, pending launches, L2 fetch granularity, persisting L2.
  private final Map<Integer, Long> values =
      new TreeMap<>(
          Map.of(
              0,
              1024L,
              1,
              1L << 20,
              2,
              8L << 20,
              4,
              2048L,
              MAX_L2_FETCH_GRANULARITY,
              64L,
              PERSISTING_L2_CACHE_SIZE,
              0L));

  public long get(int limit) {
    return values.getOrDefault(known(limit), 0L);
  }

  public void set(int limit, long value) {
    int key = known(limit);
    if (value < 0 || (key == MAX_L2_FETCH_GRANULARITY && value > MAX_FETCH)) {
      throw SimRefusal.invalidValue(
          "value: %d (expected: %s)"
              .formatted(value, key == MAX_L2_FETCH_GRANULARITY ? "0 to " + MAX_FETCH : ">= 0"));
    }
    // The driver takes too large a share of the cache as the largest there is.
    values.put(key, key == PERSISTING_L2_CACHE_SIZE ? Math.min(value, MAX_PERSISTING_L2) : value);
  }

  private int known(int limit) {
    if (limit < 0) {
      throw SimRefusal.invalidValue("limit: %d (expected: a CUlimit)".formatted(limit));
    }
    if (!values.containsKey(limit)) {
      throw new SimRefusal(
          CudaStatus.UNSUPPORTED_LIMIT,
          "limit: %d (expected: one of %s)".formatted(limit, values.keySet()));
    }
    return limit;
  }
}
