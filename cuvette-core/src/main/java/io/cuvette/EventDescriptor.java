package io.cuvette;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.base.WireFormat;
import io.cuvette.internal.stream.ExportedEvent;
import java.nio.ByteBuffer;
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

  private final ExportedEvent core;

  EventDescriptor(ExportedEvent core) {
    this.core = core;
  }

  /** The descriptor as the engine knows it. */
  ExportedEvent core() {
    return core;
  }

  /**
   * A descriptor from what {@link #toBytes()} gave.
   *
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
    return new EventDescriptor(new ExportedEvent(flags == 1, process, deviceUuid, handle));
  }

  /** The descriptor as bytes, always as many; they mean the same on every machine. */
  public byte[] toBytes() {
    ByteBuffer value = WireFormat.begin(MAGIC, BYTES);
    value.put((byte) (core.blockingSync() ? 1 : 0)).put((byte) 0);
    WireFormat.putUuid(value, core.process());
    WireFormat.putUuid(value, core.deviceUuid());
    return WireFormat.end(value.put(core.handle()));
  }

  /** Whether the event was made with {@link EventOptions#blockingSync()}. */
  public boolean blockingSync() {
    return core.blockingSync();
  }

  /** The device the event was made on. */
  public UUID deviceUuid() {
    return core.deviceUuid();
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof EventDescriptor that && core.equals(that.core);
  }

  @Override
  public int hashCode() {
    return core.hashCode();
  }

  @Override
  public String toString() {
    return core.toString();
  }
}
