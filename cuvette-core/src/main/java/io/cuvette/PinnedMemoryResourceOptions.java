package io.cuvette;

import io.cuvette.internal.base.Checks;
import java.util.Objects;
import java.util.OptionalInt;

/**
 * How a {@link PinnedMemoryResource} makes its pool. Immutable.
 *
 * @param maxBytes the size the pool may reach, 0 for the driver's default
 * @param numaId the NUMA node of the host. Empty leaves the place to the operating system; with
 *     {@code ipcEnabled}, which needs a node, it is the one nearest to the current device
 * @param ipcEnabled whether other processes can import the pool and its buffers; Linux only
 */
public record PinnedMemoryResourceOptions(long maxBytes, OptionalInt numaId, boolean ipcEnabled) {

  /** A pool of the driver's default size, placed by the operating system, for this process. */
  public static final PinnedMemoryResourceOptions DEFAULTS =
      new PinnedMemoryResourceOptions(0, OptionalInt.empty(), false);

  public PinnedMemoryResourceOptions {
    Objects.requireNonNull(numaId, "numaId");
    Checks.notNegative("maxBytes", maxBytes);
    Checks.notNegative("numaId", numaId.orElse(0));
  }

  /** A pool for this process. */
  public PinnedMemoryResourceOptions(long maxBytes, OptionalInt numaId) {
    this(maxBytes, numaId, false);
  }

  /** Another size the pool may reach. */
  public PinnedMemoryResourceOptions withMaxBytes(long bytes) {
    return new PinnedMemoryResourceOptions(bytes, numaId, ipcEnabled);
  }

  /** A NUMA node of the host. */
  public PinnedMemoryResourceOptions withNumaId(int node) {
    return new PinnedMemoryResourceOptions(maxBytes, OptionalInt.of(node), ipcEnabled);
  }

  /** Whether other processes can import the pool and its buffers. */
  public PinnedMemoryResourceOptions withIpcEnabled(boolean enabled) {
    return new PinnedMemoryResourceOptions(maxBytes, numaId, enabled);
  }
}
