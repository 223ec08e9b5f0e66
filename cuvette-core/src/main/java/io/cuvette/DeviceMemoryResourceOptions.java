package io.cuvette;

import io.cuvette.internal.base.Checks;

/**
 * How a {@link DeviceMemoryResource} makes its pool. Immutable.
 *
 * @param maxBytes the size the pool may reach, 0 for the driver's default
 * @param ipcEnabled whether other processes can import the pool and its buffers; Linux only
 */
public record DeviceMemoryResourceOptions(long maxBytes, boolean ipcEnabled) {

  /** A pool of the driver's default size, for this process. */
  public static final DeviceMemoryResourceOptions DEFAULTS =
      new DeviceMemoryResourceOptions(0, false);

  public DeviceMemoryResourceOptions {
    Checks.notNegative("maxBytes", maxBytes);
  }

  /** A pool for this process. */
  public DeviceMemoryResourceOptions(long maxBytes) {
    this(maxBytes, false);
  }

  /** Another size the pool may reach. */
  public DeviceMemoryResourceOptions withMaxBytes(long bytes) {
    return new DeviceMemoryResourceOptions(bytes, ipcEnabled);
  }

  /** Whether other processes can import the pool and its buffers. */
  public DeviceMemoryResourceOptions withIpcEnabled(boolean enabled) {
    return new DeviceMemoryResourceOptions(maxBytes, enabled);
  }
}
