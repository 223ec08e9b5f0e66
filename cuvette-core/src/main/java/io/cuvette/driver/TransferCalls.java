package io.cuvette.driver;

import java.lang.foreign.MemorySegment;

/** Driver calls that copy and fill memory in stream order. Thread-safe. */
public interface TransferCalls {

  /** Copies between any two addresses known to the driver, in stream order (cuMemcpyAsync). */
  void memcpyAsync(int device, long target, long source, long bytes, long stream);

  /** Copies native host memory to the device in stream order (cuMemcpyHtoDAsync). */
  void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream);

  /** Copies device memory to native host memory in stream order (cuMemcpyDtoHAsync). */
  void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream);

  /**
   * Copies between two devices in order of a stream of {@code streamDevice} (cuMemcpyPeerAsync);
   * works without peer access, then through the host.
   */
  void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream);

  /** Fills {@code count} bytes in stream order (cuMemsetD8Async). */
  void memsetD8Async(int device, long target, byte value, long count, long stream);

  /**
   * Fills {@code count} 2-byte values in stream order; {@code target} is 2-aligned
   * (cuMemsetD16Async).
   */
  void memsetD16Async(int device, long target, short value, long count, long stream);

  /**
   * Fills {@code count} 4-byte values in stream order; {@code target} is 4-aligned
   * (cuMemsetD32Async).
   */
  void memsetD32Async(int device, long target, int value, long count, long stream);
}
