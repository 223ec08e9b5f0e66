package io.cuvette.internal.block;

import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import org.jspecify.annotations.Nullable;

/**
 * The bytes of a buffer, or of a slice of one, as operations use them: a part of a block. It keeps
 * the buffer reachable. Immutable.
 *
 * @param face the buffer or the slice
 * @param faces makes and reads buffers of this kind
 * @param block the block
 * @param address of the first byte; 0 without bytes
 * @param order the stream that the block is freed in order of
 * @param isWhole whether it is that of a buffer, and not of a slice
 */
public record Memory(
    Face face,
    Faces faces,
    Block block,
    long address,
    long byteSize,
    OpenStream order,
    boolean isWhole) {

  /** The device that it was allocated on. */
  public Device on() {
    return order.on();
  }

  /** Whether it is memory of a device alone. */
  public boolean isOfDevice() {
    return faces.isOfDevice();
  }

  /** A part of it, which is inside. */
  public Memory part(long offset, long bytes) {
    return new Memory(face, faces, block, address + offset, bytes, order, false);
  }

  /** The host's side of the memory, for the library's own use; null if the host has none. */
  public @Nullable MemorySegment hostMemory() {
    MemorySegment all = faces.hostMemory(face);
    return all == null ? null : all.asSlice(address - faces.memory(face).address(), byteSize);
  }

  /** Where a segment of this memory that users have seen is; {@link #address} if there is none. */
  public long hostAddress() {
    return faces.hostAddress(face) + address - faces.memory(face).address();
  }

  /** Checks that it may be written. */
  public void checkWritable() {
    if (faces.isReadOnly(face)) {
      throw new IllegalArgumentException("target: %s is read-only".formatted(this));
    }
  }

  public void checkOpen() {
    on().session().checkOpen();
    block.checkOpen();
  }

  /**
   * Keeps the memory until {@link #unhold}: for a driver call or a copy of bytes, not for a wait.
   *
   * @throws IllegalStateException if it, or its session, is closed
   */
  public void hold() {
    on().session().checkOpen();
    block.hold(this);
  }

  /** The buffer is not forgotten before this. */
  public void unhold() {
    try {
      block.unhold();
    } finally {
      Reference.reachabilityFence(face);
    }
  }

  /** Closes the buffer; does nothing for a slice. */
  public void close() {
    if (isWhole) {
      block.close(face);
    }
  }

  @Override
  public String toString() {
    return face.toString();
  }
}
