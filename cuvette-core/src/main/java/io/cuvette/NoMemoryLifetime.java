package io.cuvette;

import org.jspecify.annotations.Nullable;

/**
 * The end of a buffer that owns no memory: an empty one, or a wrapped one that keeps an owner
 * reachable.
 */
final class NoMemoryLifetime extends BlockLifetime {
  private final String text;
  private final long bytes;
  private final Device device;
  private final Captures captures;
  private final long address;

  @SuppressWarnings("UnusedVariable") // holding it is its use
  private @Nullable Object owner;

  NoMemoryLifetime(
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
  long blockBytes() {
    return bytes;
  }

  @Override
  boolean keepsOut(Device other) {
    return Addresses.keepsOut(device, address, other);
  }

  @Override
  int depth() {
    return BlockReports.FOREIGN;
  }

  @Override
  BufferDescriptor descriptor(Memory part) {
    return Sharing.plain(part, part.address());
  }

  @Override
  String describe() {
    return text;
  }

  @Override
  void giveBack() {
    if (isCaptured()) {
      captures.releaseLater(this);
    } else {
      owner = null;
    }
  }
}
