package io.cuvette.internal.interop;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.session.Device;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts what wants a device profiled, and starts and stops it. No lock is held across the calls:
 * who made one looks at the count again, so that the last call is the one that the count asks for.
 * Thread-safe.
 */
public final class Profiling {
  private final Device device;
  private final AtomicInteger open = new AtomicInteger();

  public Profiling(Device device) {
    this.device = device;
    device.session().children().add(this::endWithSession);
  }

  private void endWithSession() {
    if (open.get() > 0) {
      device.session().driver().devices().profilerStop(device.id());
    }
  }

  /** Has the device profiled until {@link #end}; after a failure it was not begun. */
  public void begin() {
    device.context(); // fails if it is closed
    if (open.getAndIncrement() > 0) {
      return;
    }
    try {
      settle(true);
    } catch (RuntimeException | Error e) {
      if (open.decrementAndGet() > 0) { // who began meanwhile counts on this start
        Failures.runAfter(e, () -> settle(true));
      }
      throw e;
    }
  }

  /** Ends what was begun; the session may have ended with it. */
  public void end() {
    if (open.decrementAndGet() == 0 && !device.session().isClosed()) {
      settle(false);
    }
  }

  private void settle(boolean on) {
    boolean wanted = on;
    do {
      call(wanted);
      wanted = !wanted;
    } while (wanted == (open.get() > 0));
  }

  private void call(boolean on) {
    device.run(driver -> {
      if (on) {
        driver.devices().profilerStart(device.id());
      } else {
        driver.devices().profilerStop(device.id());
      }
    });
  }
}
