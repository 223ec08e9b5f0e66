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

  /** Creates options. */
  public PinnedMemoryResourceOptions {
    Objects.requireNonNull(numaId, "numaId");
    Checks.notNegative("maxBytes", maxBytes);
    Checks.notNegative("numaId", numaId.orElse(0));
  }

  /**
   * A pool for this process.
   *
   * @param maxBytes the size the pool may reach in bytes; 0 for the driver's default
   * @param numaId the NUMA node of the host; empty leaves the place to the operating system
   */
  public PinnedMemoryResourceOptions(long maxBytes, OptionalInt numaId) {
    this(maxBytes, numaId, false);
  }

  /**
   * {@return these options with another maximum size}
   *
   * @param bytes the size in bytes, >= 0
   */
  public PinnedMemoryResourceOptions withMaxBytes(long bytes) {
    return new PinnedMemoryResourceOptions(bytes, numaId, ipcEnabled);
  }

  /**
   * {@return these options with a NUMA node of the host}
   *
   * @param node the number of the node, >= 0
   */
  public PinnedMemoryResourceOptions withNumaId(int node) {
    return new PinnedMemoryResourceOptions(maxBytes, OptionalInt.of(node), ipcEnabled);
  }

  /**
   * {@return these options with or without import by other processes}
   *
   * @param enabled whether they can
   */
  public PinnedMemoryResourceOptions withIpcEnabled(boolean enabled) {
    return new PinnedMemoryResourceOptions(maxBytes, numaId, enabled);
  }
}
