package io.cuvette;

import io.cuvette.internal.Checks;
import java.util.OptionalInt;

/**
 * How a {@link PinnedMemoryResource} makes its pool. Immutable.
 *
 * @param maxBytes the size the pool may reach, 0 for the driver's default
 * @param numaId the NUMA node of the host, or empty to leave the place to the operating system
 */
public record PinnedMemoryResourceOptions(long maxBytes, OptionalInt numaId) {

  /** A pool of the driver's default size, placed by the operating system. */
  public static final PinnedMemoryResourceOptions DEFAULTS =
      new PinnedMemoryResourceOptions(0, OptionalInt.empty());

  public PinnedMemoryResourceOptions {
    Checks.notNegative("maxBytes", maxBytes);
    Checks.notNegative("numaId", numaId.orElse(0));
  }

  /** Another size the pool may reach. */
  public PinnedMemoryResourceOptions withMaxBytes(long bytes) {
    return new PinnedMemoryResourceOptions(bytes, numaId);
  }

  /** A NUMA node of the host. */
  public PinnedMemoryResourceOptions withNumaId(int node) {
    return new PinnedMemoryResourceOptions(maxBytes, OptionalInt.of(node));
  }
}
