package io.cuvette;

import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** The heap has no room for what users would hold. Stateless. */
final class WithoutHeap implements Faces {
  private final Faces faces = BufferKind.DEVICE;
  private final boolean hasBuffer;

  /** Not even for the buffer. */
  WithoutHeap() {
    this(false);
  }

  /** For the buffer alone, if at all. */
  WithoutHeap(boolean hasBuffer) {
    this.hasBuffer = hasBuffer;
  }

  @Override
  public Face make(long address, long bytes, OpenStream stream) {
    if (!hasBuffer) {
      throw new OutOfMemoryError("the test's");
    }
    return faces.make(address, bytes, stream);
  }

  @Override
  public void own(Face buffer, Block block) {
    throw new OutOfMemoryError("the test's");
  }

  @Override
  public Memory memory(Face buffer) {
    return faces.memory(buffer);
  }

  @Override
  public boolean isOfDevice() {
    return faces.isOfDevice();
  }

  @Override
  public boolean isOfHost() {
    return faces.isOfHost();
  }

  @Override
  public @Nullable MemorySegment hostMemory(Face buffer) {
    return faces.hostMemory(buffer);
  }

  @Override
  public long hostAddress(Face buffer) {
    return faces.hostAddress(buffer);
  }
}
