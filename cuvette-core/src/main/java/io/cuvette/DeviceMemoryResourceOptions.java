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

  /** Creates options. */
  public DeviceMemoryResourceOptions {
    Checks.notNegative("maxBytes", maxBytes);
  }

  /**
   * A pool for this process.
   *
   * @param maxBytes the size the pool may reach in bytes; 0 for the driver's default
   */
  public DeviceMemoryResourceOptions(long maxBytes) {
    this(maxBytes, false);
  }

  /**
   * {@return these options with another maximum size}
   *
   * @param bytes the size in bytes, >= 0
   */
  public DeviceMemoryResourceOptions withMaxBytes(long bytes) {
    return new DeviceMemoryResourceOptions(bytes, ipcEnabled);
  }

  /**
   * {@return these options with or without import by other processes}
   *
   * @param enabled whether they can
   */
  public DeviceMemoryResourceOptions withIpcEnabled(boolean enabled) {
    return new DeviceMemoryResourceOptions(maxBytes, enabled);
  }
}
