package io.cuvette;

import io.cuvette.internal.order.OpenStream;

/** Memory of a device. See {@link Buffer} for its operations and for threads. */
public sealed class DeviceBuffer extends BufferBase implements Buffer permits GrowableBuffer {

  DeviceBuffer(long address, long byteSize, OpenStream stream) {
    super(address, byteSize, stream);
  }

  private DeviceBuffer(DeviceBuffer of, long offset, long bytes) {
    super(of, offset, bytes);
  }

  @Override
  public final boolean isHostAccessible() {
    return false;
  }

  @Override
  public final DeviceBuffer parent() {
    return (DeviceBuffer) whole();
  }

  @Override
  public final DeviceBuffer slice(long offset) {
    return slice(offset, byteSize() - offset);
  }

  @Override
  public final DeviceBuffer slice(long offset, long bytes) {
    return new DeviceBuffer(this, offset, bytes);
  }

  @Override
  final BufferKind kind() {
    return BufferKind.DEVICE;
  }

  @Override
  final Buffer asBuffer() {
    return this;
  }

  @Override
  public String toString() {
    return text("device buffer");
  }
}
