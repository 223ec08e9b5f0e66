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
   * Copies rows between any addresses known to the driver, in stream order (cuMemcpy3DAsync). No
   * byte may be in the source and in the target.
   *
   * @param device the device, from 0
   * @param copy what is copied
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void memcpy3DAsync(int device, BoxCopy copy, long stream);

  /**
   * Makes copies between addresses known to the driver, all of them in stream order, but in no
   * order among themselves (cuMemcpyBatchAsync; one by one with a driver that has no such call).
   *
   * @param device the device, from 0
   * @param targets the first address that each copy writes
   * @param sources the first address that each copy reads, as many
   * @param bytes the number of bytes of each copy, &gt; 0, as many
   * @param stream the stream, which is not the null stream and captures no graph
   * @throws CudaException if the driver reports an error
   */
  void memcpyBatchAsync(int device, long[] targets, long[] sources, long[] bytes, long stream);

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
