package io.cuvette.internal.devicepool;

import io.cuvette.internal.session.Device;

/** Releases memory that it can do without when a pool runs out. */
public interface Pressure {
  /**
   * Releases memory, on the allocating thread, which holds no lock.
   *
   * @param neededBytes the size of the block that was not found
   * @return the bytes released
   */
  long onPressure(Device device, long neededBytes);
}
