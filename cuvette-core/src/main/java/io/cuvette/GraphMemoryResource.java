package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.internal.block.NodeBlock;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import java.util.Objects;

/**
 * Memory that the graphs of a device allocate and free themselves, in each launch at the same
 * address (allocation nodes). The driver lets graphs that do not run at the same time use the same
 * bytes, and keeps what is free for the next launch until {@link #trim}. Thread-safe.
 *
 * <p>A buffer that is closed in the capture in which it was allocated is freed there, in order of
 * the stream: work of other streams that uses it has to be joined before. One that is still open
 * when the capture ends is what a launch leaves: its bytes are there from a launch until the buffer
 * is closed, which frees them in order of the stream it was allocated on. Before the next launch it
 * has to be closed, or the executable has {@link GraphOptions#freeOnLaunch}; such a buffer is valid
 * after each launch. A buffer that is forgotten frees nothing before the Cuda ends.
 */
public final class GraphMemoryResource implements MemoryResource {
  private final Device device;

  /**
   * A resource for a device. All of one device stand for the same memory.
   *
   * @param device the device
   */
  public GraphMemoryResource(CudaDevice device) {
    this.device = Objects.requireNonNull(device, "device").core();
  }

  /**
   * Adds an allocation to what a stream captures (cuMemAllocAsync on a stream that captures).
   *
   * @param bytes the size in bytes, &gt;= 0; 0 gives a buffer without memory
   * @param stream a stream of the device that captures a graph
   * @return a buffer of memory that is there when the graph runs
   * @throws IllegalArgumentException if {@code bytes} is negative, or the stream of another device
   * @throws IllegalStateException if the stream is not capturing, or it or the Cuda is closed
   * @throws CudaException if the driver reports an error
   */
  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    OpenStream in = CudaStream.coreOf(stream);
    if (in.on() != device) {
      throw new IllegalArgumentException(
          "stream: %s of %s (expected: a stream of %s)".formatted(stream, in.on(), device));
    }
    return BufferKind.buffer(NodeBlock.allocate(BufferKind.DEVICE, bytes, in));
  }

  /**
   * Gives memory that no graph uses back to the device (cuDeviceGraphMemTrim).
   *
   * @throws IllegalStateException if the Cuda is closed
   * @throws CudaException if the driver reports an error
   */
  public void trim() {
    device.run(driver -> driver.graphs().deviceGraphMemTrim(device.id()));
  }

  /** {@return the bytes that graphs use now, as the driver counts them (USED_MEM_CURRENT)} */
  public long usedMemCurrent() {
    return get(GraphMemAttribute.USED_CURRENT);
  }

  /** {@return the most bytes that graphs used, since the last reset (USED_MEM_HIGH)} */
  public long usedMemHigh() {
    return get(GraphMemAttribute.USED_HIGH);
  }

  /**
   * Forgets that graphs used more than now (cuDeviceSetGraphMemAttribute).
   *
   * @throws CudaException if the driver reports an error
   */
  public void resetUsedMemHigh() {
    reset(GraphMemAttribute.USED_HIGH);
  }

  /** {@return the bytes that graphs use or keep now (RESERVED_MEM_CURRENT)} */
  public long reservedMemCurrent() {
    return get(GraphMemAttribute.RESERVED_CURRENT);
  }

  /** {@return the most bytes that graphs used or kept, since the last reset (RESERVED_MEM_HIGH)} */
  public long reservedMemHigh() {
    return get(GraphMemAttribute.RESERVED_HIGH);
  }

  /**
   * Forgets that graphs used or kept more than now (cuDeviceSetGraphMemAttribute).
   *
   * @throws CudaException if the driver reports an error
   */
  public void resetReservedMemHigh() {
    reset(GraphMemAttribute.RESERVED_HIGH);
  }

  private long get(GraphMemAttribute attribute) {
    return device.ask(driver -> driver.graphs().deviceGetGraphMemAttribute(device.id(), attribute));
  }

  private void reset(GraphMemAttribute attribute) {
    device.run(driver -> driver.graphs().deviceResetGraphMemAttribute(device.id(), attribute));
  }

  @Override
  public String toString() {
    return "GraphMemoryResource(%s)".formatted(device);
  }
}
