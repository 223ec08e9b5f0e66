package io.cuvette.internal.block;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.Streams;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The end of a buffer that owns no memory: an empty one, or one that keeps an owner reachable. */
public final class BorrowedBlock extends Block {
  private final long bytes;
  private final Device device;
  private final Streams streams;
  private final long address;
  private final @Nullable List<Integer> peers; // null: the driver knows who has access

  @SuppressWarnings("UnusedVariable") // holding it is its use
  private @Nullable Object owner;

  public BorrowedBlock(
      Face buffer,
      OpenStream stream,
      long address,
      long bytes,
      @Nullable Object owner,
      @Nullable List<Integer> peers) {
    super(buffer, null, null, stream.state);
    this.owner = owner;
    this.bytes = bytes;
    this.device = stream.on();
    this.streams = stream.state.streams;
    this.address = address;
    this.peers = peers;
  }

  @Override
  public long blockBytes() {
    return bytes;
  }

  @Override
  public boolean deniesAccess(Device other) {
    return peers == null
        ? Addresses.deniesAccess(device, address, other)
        : !peers.contains(other.id());
  }

  @Override
  public boolean isPlain() {
    return peers == null && bytes != 0 && Addresses.isPlain(device, address);
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
    return "buffer of %d bytes at 0x%x".formatted(bytes, address);
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
