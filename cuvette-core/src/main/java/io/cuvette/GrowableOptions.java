package io.cuvette;

import java.util.List;
import java.util.Objects;

/**
 * How a {@link GrowableBuffer} is made. Immutable.
 *
 * @param maxBytes the largest size that it may reach, in bytes, > 0: so many addresses are reserved
 * @param peers the other devices that can access its memory
 */
public record GrowableOptions(long maxBytes, List<CudaDevice> peers) {

  /** Checks the values. */
  public GrowableOptions {
    if (maxBytes <= 0 || maxBytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          "maxBytes: %d (expected: 1 to %d)".formatted(maxBytes, MAX_BYTES));
    }
    peers = List.copyOf(Objects.requireNonNull(peers, "peers"));
  }

  /** The most that can be reserved: what a GPU has addresses for, 128 TiB. */
  public static final long MAX_BYTES = 1L << 47;

  /**
   * {@return the options of memory that is its device's and process's alone}
   *
   * @param maxBytes the largest size that the buffer may reach, in bytes, > 0
   */
  public static GrowableOptions ofMaxBytes(long maxBytes) {
    return new GrowableOptions(maxBytes, List.of());
  }

  /**
   * {@return these options with other devices that can access the memory}
   *
   * @param devices the other devices; the buffer's own need not be among them
   */
  public GrowableOptions withPeers(List<CudaDevice> devices) {
    return new GrowableOptions(maxBytes, Objects.requireNonNull(devices, "devices"));
  }
}
