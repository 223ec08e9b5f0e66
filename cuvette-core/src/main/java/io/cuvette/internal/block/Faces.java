package io.cuvette.internal.block;

import io.cuvette.internal.order.OpenStream;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Makes and reads what users hold of one kind of memory. Stateless. */
public interface Faces {
  /** A buffer of memory at an address; {@link #own} follows. */
  Face make(long address, long bytes, OpenStream stream);

  /** The same for memory that the host sees as a segment. */
  default Face make(MemorySegment memory, OpenStream stream) {
    return make(memory.address(), memory.byteSize(), stream);
  }

  /** A buffer of a part of other memory of this kind; {@link #own} follows. */
  default Face cut(Memory whole, long offset, long bytes, OpenStream stream) {
    return make(whole.address() + offset, bytes, stream);
  }

  /** Tells a buffer the block that it is of. */
  void own(Face buffer, Block block);

  /** The memory of a buffer. */
  Memory memory(Face buffer);

  /** Whether it is memory of a device alone. */
  boolean isOfDevice();

  /** Whether it is page-locked memory of the host. */
  boolean isOfHost();

  /** Whether it is memory that nobody may write through the buffer. */
  default boolean isReadOnly(Face buffer) {
    return false;
  }

  /** The host's side of the memory, for the library's own use; null if the host has none. */
  @Nullable MemorySegment hostMemory(Face buffer);

  /** Where a segment of the memory that users have seen is; its address if there is none. */
  long hostAddress(Face buffer);
}
