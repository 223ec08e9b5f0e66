package io.cuvette;

import io.cuvette.internal.Checks;

/**
 * How a {@link DeviceMemoryResource} makes its pool. Immutable.
 *
 * @param maxBytes the size the pool may reach, 0 for the driver's default
 */
public record DeviceMemoryResourceOptions(long maxBytes) {

  /** A pool of the driver's default size. */
  public static final DeviceMemoryResourceOptions DEFAULTS = new DeviceMemoryResourceOptions(0);

  public DeviceMemoryResourceOptions {
    Checks.notNegative("maxBytes", maxBytes);
  }

  /** Another size the pool may reach. */
  public DeviceMemoryResourceOptions withMaxBytes(long bytes) {
    return new DeviceMemoryResourceOptions(bytes);
  }
}
