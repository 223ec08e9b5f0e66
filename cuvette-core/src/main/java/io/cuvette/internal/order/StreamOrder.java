package io.cuvette.internal.order;

import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.stream.DriverStream;

/** Puts a stream behind the work of others. Stateless. */
public final class StreamOrder {
  private StreamOrder() {}

  /**
   * Makes a stream wait for the work that another one has queued so far.
   *
   * @return false if one of them cannot be queried now, so that it may not wait
   */
  public static boolean follow(DriverStream user, DriverStream home) {
    return user == home || user.isIdle() || (user.ask(() -> true) && followNow(user, home));
  }

  /** Asks one stream after the other: two threads may do this with the same two crosswise. */
  private static boolean followNow(DriverStream user, DriverStream home) {
    WorkMarker work = WorkMarker.of(user);
    try {
      work.record();
      return home.ask(() -> work.precede(home));
    } finally {
      work.abandon();
    }
  }
}
