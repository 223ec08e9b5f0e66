package io.cuvette.driver;

import java.lang.foreign.MemorySegment;

/** Driver calls that copy and fill memory in stream order. Thread-safe. */
public interface TransferCalls {

  /**
   * Copies between any two addresses known to the driver, in stream order (cuMemcpyAsync).
   *
   * @param device the device, from 0
   * @param target the first address that is written
   * @param source the first address that is read
   * @param bytes the number of bytes
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memcpyAsync(int device, long target, long source, long bytes, long stream);

  /**
   * Copies native host memory to the device in stream order (cuMemcpyHtoDAsync).
   *
   * @param device the device, from 0
   * @param target the first address that is written
   * @param source the native memory that is read, as many bytes as it has
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream);

  /**
   * Copies device memory to native host memory in stream order (cuMemcpyDtoHAsync).
   *
   * @param device the device, from 0
   * @param target the native memory that is written, as many bytes as it has
   * @param source the first address that is read
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream);

  /**
   * Copies between two devices in order of a stream of {@code streamDevice} (cuMemcpyPeerAsync);
   * works without peer access, then through the host.
   *
   * @param streamDevice the device of the stream, from 0
   * @param target the first address that is written
   * @param targetDevice the device of the target, from 0
   * @param source the first address that is read
   * @param sourceDevice the device of the source, from 0
   * @param bytes the number of bytes
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream);

  /**
   * Fills {@code count} bytes in stream order (cuMemsetD8Async).
   *
   * @param device the device, from 0
   * @param target the first address that is written
   * @param value the byte that is written
   * @param count the number of values
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memsetD8Async(int device, long target, byte value, long count, long stream);

  /**
   * Fills {@code count} 2-byte values in stream order; {@code target} is 2-aligned
   * (cuMemsetD16Async).
   *
   * @param device the device, from 0
   * @param target the first address that is written
   * @param value the 2-byte value that is written
   * @param count the number of values
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memsetD16Async(int device, long target, short value, long count, long stream);

  /**
   * Fills {@code count} 4-byte values in stream order; {@code target} is 4-aligned
   * (cuMemsetD32Async).
   *
   * @param device the device, from 0
   * @param target the first address that is written
   * @param value the 4-byte value that is written
   * @param count the number of values
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memsetD32Async(int device, long target, int value, long count, long stream);
}
