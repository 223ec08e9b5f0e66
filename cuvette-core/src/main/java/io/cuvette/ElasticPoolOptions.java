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
 */
public record ElasticPoolOptions(
    @Nullable MemoryLimit limit, List<CudaDevice> peers, long releaseThresholdBytes) {

  /** The limit of the Cuda, no peers, and all is kept. */
  public static final ElasticPoolOptions DEFAULTS =
      new ElasticPoolOptions(null, List.of(), Long.MAX_VALUE);

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
        Objects.requireNonNull(first, "first"), peers, releaseThresholdBytes);
  }

  /**
   * {@return these options with other devices that may access the memory}
   *
   * @param devices the devices
   */
  public ElasticPoolOptions withPeers(CudaDevice... devices) {
    Objects.requireNonNull(devices, "devices");
    return new ElasticPoolOptions(limit, List.of(devices), releaseThresholdBytes);
  }

  /**
   * {@return these options with another bound for what stays cached}
   *
   * @param bytes the bytes, >= 0
   */
  public ElasticPoolOptions withReleaseThresholdBytes(long bytes) {
    return new ElasticPoolOptions(limit, peers, bytes);
  }
}
