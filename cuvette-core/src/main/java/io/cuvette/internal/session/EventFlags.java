package io.cuvette.internal.session;

import io.cuvette.EventOptions;

/** How an event is made, as the driver takes it. */
public final class EventFlags {
  private static final int BLOCKING_SYNC = 1;
  private static final int DISABLE_TIMING = 2;
  private static final int INTERPROCESS = 4;

  private EventFlags() {}

  public static int of(EventOptions options) {
    return (options.blockingSync() ? BLOCKING_SYNC : 0)
        | (options.timing() ? 0 : DISABLE_TIMING)
        | (options.interprocess() ? INTERPROCESS : 0);
  }
}
