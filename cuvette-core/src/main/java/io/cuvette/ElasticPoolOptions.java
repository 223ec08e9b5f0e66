package io.cuvette;

import io.cuvette.internal.base.Checks;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How an {@link ElasticMemoryPool} works. Immutable.
 *
 * @param limit the first limit for each device; null takes that of {@link CudaOptions}
 * @param peers other devices of the same Cuda that may access the memory
 * @param releaseThresholdBytes how much may stay cached after a free: what is beyond goes back to
 *     the driver once its work is done. Long.MAX_VALUE keeps all
 * @param exportable whether {@link ElasticMemoryPool#export} can share the memory with other
 *     processes
 */
public record ElasticPoolOptions(
    @Nullable MemoryLimit limit,
    List<CudaDevice> peers,
    long releaseThresholdBytes,
    boolean exportable) {

  /** The limit of the Cuda, no peers, all is kept, and all is this process's alone. */
  public static final ElasticPoolOptions DEFAULTS =
      new ElasticPoolOptions(null, List.of(), Long.MAX_VALUE, false);

  /** Creates options. */
  public ElasticPoolOptions {
    peers = List.copyOf(Objects.requireNonNull(peers, "peers"));
    Checks.notNegative("releaseThresholdBytes", releaseThresholdBytes);
  }

  /**
   * {@return these options with a first limit for each device; {@link MemoryLimit#none()}, or one
   * of 0, does not limit}
   *
   * @param first the limit
   */
  public ElasticPoolOptions withLimit(MemoryLimit first) {
    return new ElasticPoolOptions(
        Objects.requireNonNull(first, "first"), peers, releaseThresholdBytes, exportable);
  }

  /**
   * {@return these options with other devices that may access the memory}
   *
   * @param devices the devices
   */
  public ElasticPoolOptions withPeers(CudaDevice... devices) {
    Objects.requireNonNull(devices, "devices");
    return new ElasticPoolOptions(limit, List.of(devices), releaseThresholdBytes, exportable);
  }

  /**
   * {@return these options with another bound for what stays cached}
   *
   * @param bytes the bytes, >= 0
   */
  public ElasticPoolOptions withReleaseThresholdBytes(long bytes) {
    return new ElasticPoolOptions(limit, peers, bytes, exportable);
  }

  /**
   * {@return these options with memory that can be shared with other processes, or not}
   *
   * @param shared whether it can
   */
  public ElasticPoolOptions withExportable(boolean shared) {
    return new ElasticPoolOptions(limit, peers, releaseThresholdBytes, shared);
  }
}
