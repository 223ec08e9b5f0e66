package io.cuvette.internal.devicepool;

import io.cuvette.internal.session.Device;

/** Is asked for memory that it can do without when a pool runs out. */
public interface Pressure {
  /**
   * Asks on the allocating thread, without a lock.
   *
   * @param neededBytes the size of the block that was not found
   * @return the bytes given back
   */
  long onPressure(Device device, long neededBytes);
}
