package io.cuvette.internal.block;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.Streams;
import org.jspecify.annotations.Nullable;

/**
 * The end of a buffer that owns no memory: an empty one, or a wrapped one that keeps an owner
 * reachable.
 */
public final class BorrowedBlock extends Block {
  private final String text;
  private final long bytes;
  private final Device device;
  private final Streams streams;
  private final long address;

  @SuppressWarnings("UnusedVariable") // holding it is its use
  private @Nullable Object owner;

  public BorrowedBlock(
      Face buffer, OpenStream stream, long address, long bytes, @Nullable Object owner) {
    super(buffer, null, null, stream.state);
    this.owner = owner;
    this.bytes = bytes;
    this.device = stream.on();
    this.streams = stream.state.streams;
    this.address = address;
    this.text = "buffer of %d bytes at 0x%x".formatted(bytes, address);
  }

  @Override
  public long blockBytes() {
    return bytes;
  }

  @Override
  public boolean deniesAccess(Device other) {
    return Addresses.deniesAccess(device, address, other);
  }

  @Override
  public boolean isPlain() {
    return bytes != 0 && Addresses.isPlain(device, address);
  }

  @Override
  public int depth() {
    return BlockReports.FOREIGN;
  }

  @Override
  public BufferDescriptor descriptor(Memory part) {
    return PlainExport.plain(part, part.address());
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public void giveBack() {
    if (isCaptured()) {
      streams.releaseAfterGraphs(this);
    } else {
      owner = null;
    }
  }
}
