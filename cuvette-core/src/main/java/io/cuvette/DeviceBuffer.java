package io.cuvette;

import io.cuvette.internal.order.OpenStream;

/** Memory of a device. See {@link Buffer} for its operations and for threads. */
public final class DeviceBuffer extends BufferBase implements Buffer {

  DeviceBuffer(long address, long byteSize, OpenStream stream) {
    super(address, byteSize, stream);
  }

  private DeviceBuffer(DeviceBuffer of, long offset, long bytes) {
    super(of, offset, bytes);
  }

  @Override
  public boolean isHostAccessible() {
    return false;
  }

  @Override
  public DeviceBuffer parent() {
    return (DeviceBuffer) whole();
  }

  @Override
  public DeviceBuffer slice(long offset) {
    return slice(offset, byteSize() - offset);
  }

  @Override
  public DeviceBuffer slice(long offset, long bytes) {
    return new DeviceBuffer(this, offset, bytes);
  }

  @Override
  BufferKind kind() {
    return BufferKind.DEVICE;
  }

  @Override
  Buffer asBuffer() {
    return this;
  }

  @Override
  public String toString() {
    return text("device buffer");
  }
}
