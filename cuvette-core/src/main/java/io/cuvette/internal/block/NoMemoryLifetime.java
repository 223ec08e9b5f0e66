package io.cuvette.internal.block;

import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.Captures;
import io.cuvette.internal.stream.OpenStream;
import org.jspecify.annotations.Nullable;

/**
 * The end of a buffer that owns no memory: an empty one, or a wrapped one that keeps an owner
 * reachable.
 */
public final class NoMemoryLifetime extends BlockLifetime {
  private final String text;
  private final long bytes;
  private final Device device;
  private final Captures captures;
  private final long address;

  @SuppressWarnings("UnusedVariable") // holding it is its use
  private @Nullable Object owner;

  public NoMemoryLifetime(
      Face buffer, OpenStream stream, long address, long bytes, @Nullable Object owner) {
    super(buffer, null, null, stream.state);
    this.owner = owner;
    this.bytes = bytes;
    this.device = stream.on();
    this.captures = stream.state.streams.captures();
    this.address = address;
    this.text = "buffer of %d bytes at 0x%x".formatted(bytes, address);
  }

  @Override
  public long blockBytes() {
    return bytes;
  }

  @Override
  public boolean keepsOut(Device other) {
    return Addresses.keepsOut(device, address, other);
  }

  @Override
  public int depth() {
    return BlockReports.FOREIGN;
  }

  @Override
  public Exported descriptor(Memory part) {
    return Sharing.plain(part, part.address());
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public void giveBack() {
    if (isCaptured()) {
      captures.releaseLater(this);
    } else {
      owner = null;
    }
  }
}
