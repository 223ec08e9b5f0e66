package io.cuvette;

import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** The three kinds of buffers, as the engine makes and reads them. */
enum BufferKind implements Faces {
  DEVICE {
    @Override
    public Face make(long address, long bytes, OpenStream stream) {
      return new DeviceBuffer(address, bytes, stream);
    }
  },
  MANAGED {
    @Override
    public Face make(long address, long bytes, OpenStream stream) {
      return new ManagedBuffer(address, bytes, stream);
    }
  },
  PINNED {
    @Override
    public Face make(long address, long bytes, OpenStream stream) {
      return new PinnedBuffer(address, bytes, null, stream);
    }

    @Override
    public Face make(MemorySegment memory, OpenStream stream) {
      return new PinnedBuffer(memory.address(), memory.byteSize(), memory, stream);
    }

    @Override
    public Face cut(Memory whole, long offset, long bytes, OpenStream stream) {
      MemorySegment all = base(whole.face()).hostMemory();
      MemorySegment part = all == null ? null : all.asSlice(offset, bytes);
      return new PinnedBuffer(whole.address() + offset, bytes, part, stream);
    }
  };

  static BufferBase base(Face buffer) {
    return (BufferBase) buffer;
  }

  /** A buffer as its public type; the kind that pools mostly lend costs one comparison. */
  static Buffer buffer(Face buffer) {
    return buffer instanceof DeviceBuffer device ? device : base(buffer).asBuffer();
  }

  @Override
  public final void own(Face buffer, Block block) {
    base(buffer).attach(block);
  }

  @Override
  public final Memory memory(Face buffer) {
    return base(buffer).memory();
  }

  @Override
  public final boolean isOfDevice() {
    return this == DEVICE;
  }

  @Override
  public final boolean isOfHost() {
    return this == PINNED;
  }

  @Override
  public final boolean isReadOnly(Face buffer) {
    return base(buffer).isReadOnly();
  }

  @Override
  public final @Nullable MemorySegment hostMemory(Face buffer) {
    return base(buffer).hostMemory();
  }

  @Override
  public final long hostAddress(Face buffer) {
    return base(buffer).hostAddress();
  }
}
