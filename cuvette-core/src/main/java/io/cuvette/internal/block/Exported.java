package io.cuvette.internal.block;

import io.cuvette.BufferDescriptor;
import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.WireFormat;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** What another process imports memory by, as the engine knows it. Immutable. */
public final class Exported {
  private final BufferDescriptor.Kind kind;
  private final long offset;
  private final long byteSize;
  private final UUID process;
  private final UUID deviceUuid;
  private final byte[] handle;

  /** What is exported; the driver's handle stands for the whole allocation. */
  public Exported(
      BufferDescriptor.Kind kind,
      long offset,
      long byteSize,
      UUID process,
      UUID deviceUuid,
      byte[] handle) {
    Checks.notNegative("offset", offset);
    Checks.inRange("byteSize", byteSize, 1, Long.MAX_VALUE - offset);
    WireFormat.require(
        handle.length == IpcCalls.HANDLE_BYTES,
        "BufferDescriptor",
        "handle bytes",
        handle.length,
        IpcCalls.HANDLE_BYTES);
    this.kind = kind;
    this.offset = offset;
    this.byteSize = byteSize;
    this.process = process;
    this.deviceUuid = deviceUuid;
    this.handle = handle.clone();
  }

  public BufferDescriptor.Kind kind() {
    return kind;
  }

  /** Where the buffer begins in the allocation that is mapped, in bytes. */
  public long offset() {
    return offset;
  }

  public long byteSize() {
    return byteSize;
  }

  public UUID deviceUuid() {
    return deviceUuid;
  }

  /** The process that made the memory. */
  public UUID process() {
    return process;
  }

  /** The driver's bytes; the same for all buffers of one allocation. */
  public byte[] handle() {
    return handle.clone();
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof Exported that
        && kind == that.kind
        && offset == that.offset
        && byteSize == that.byteSize
        && process.equals(that.process)
        && deviceUuid.equals(that.deviceUuid)
        && Arrays.equals(handle, that.handle);
  }

  @Override
  public int hashCode() {
    return Objects.hash(kind, offset, byteSize, process, Arrays.hashCode(handle));
  }

  @Override
  public String toString() {
    return "BufferDescriptor[%s, offset=%d, byteSize=%d, handle=%s…]"
        .formatted(kind, offset, byteSize, HexFormat.of().formatHex(handle, 0, 8));
  }
}
