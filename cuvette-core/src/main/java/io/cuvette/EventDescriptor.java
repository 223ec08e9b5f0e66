package io.cuvette;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.base.WireFormat;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * What another process imports an event by; {@link CudaEvent#descriptor()} makes it and {@link
 * CudaDevice#importEvent} takes it. The exporter keeps its event open as long as others use it.
 * Immutable.
 */
public final class EventDescriptor {
  private static final int MAGIC = 0x43564544; // CVED

  /** Header, flags, 1 unused byte, two UUIDs, the driver's handle, checksum. */
  private static final int BYTES =
      WireFormat.HEADER_BYTES + 2 + 4 * Long.BYTES + IpcCalls.HANDLE_BYTES + Integer.BYTES;

  private static final String NAME = "EventDescriptor";

  private final boolean blockingSync;
  private final UUID process;
  private final UUID deviceUuid;
  private final byte[] handle;

  /**
   * A descriptor of its parts; {@link CudaEvent#descriptor()} makes one of an event.
   *
   * @param blockingSync whether waiting for the event blocks the thread
   * @param process the process that made the event
   * @param deviceUuid the device that the event was made on
   * @param handle the driver's bytes, always as many
   * @throws IllegalArgumentException if the handle has another length
   */
  public EventDescriptor(boolean blockingSync, UUID process, UUID deviceUuid, byte[] handle) {
    this.blockingSync = blockingSync;
    this.process = Objects.requireNonNull(process, "process");
    this.deviceUuid = Objects.requireNonNull(deviceUuid, "deviceUuid");
    this.handle = WireFormat.handle(NAME, handle);
  }

  /**
   * {@return the descriptor that {@link #toBytes()} encoded}
   *
   * @param bytes the bytes of a descriptor
   * @throws IllegalArgumentException naming what is wrong: the length, magic number, version, flags
   *     or checksum
   */
  public static EventDescriptor fromBytes(byte[] bytes) {
    Objects.requireNonNull(bytes, "bytes");
    ByteBuffer content = WireFormat.open(NAME, bytes, MAGIC, BYTES);
    int flags = content.get();
    WireFormat.require((flags & ~1) == 0, NAME, "flags", flags, flags & 1);
    int unused = content.get();
    WireFormat.require(unused == 0, NAME, "unused byte", unused, 0);
    UUID process = WireFormat.getUuid(content);
    UUID deviceUuid = WireFormat.getUuid(content);
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    content.get(handle);
    return new EventDescriptor(flags == 1, process, deviceUuid, handle);
  }

  /** {@return the descriptor as bytes, of a fixed length and the same on every machine} */
  public byte[] toBytes() {
    ByteBuffer value = WireFormat.begin(MAGIC, BYTES);
    value.put((byte) (blockingSync ? 1 : 0)).put((byte) 0);
    WireFormat.putUuid(value, process);
    WireFormat.putUuid(value, deviceUuid);
    return WireFormat.end(value.put(handle));
  }

  /** {@return whether the event was created with {@link EventOptions#blockingSync()}} */
  public boolean blockingSync() {
    return blockingSync;
  }

  /** {@return the UUID of the device that the event was created on} */
  public UUID deviceUuid() {
    return deviceUuid;
  }

  /**
   * The process that made the event.
   *
   * @return its identity, made anew in each process
   */
  public UUID process() {
    return process;
  }

  /**
   * The driver's bytes.
   *
   * @return a copy
   */
  public byte[] handle() {
    return handle.clone();
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof EventDescriptor that
        && blockingSync == that.blockingSync
        && process.equals(that.process)
        && deviceUuid.equals(that.deviceUuid)
        && Arrays.equals(handle, that.handle);
  }

  @Override
  public int hashCode() {
    return Objects.hash(blockingSync, process, Arrays.hashCode(handle));
  }

  @Override
  public String toString() {
    return "%s[blockingSync=%b, handle=%s…]"
        .formatted(NAME, blockingSync, HexFormat.of().formatHex(handle, 0, 8));
  }
}
