package io.cuvette.internal.stream;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.base.WireFormat;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** What another process imports an event by, as the engine knows it. Immutable. */
public final class ExportedEvent {
  private final boolean blockingSync;
  private final UUID process;
  private final UUID deviceUuid;
  private final byte[] handle;

  /** What is exported. */
  public ExportedEvent(boolean blockingSync, UUID process, UUID deviceUuid, byte[] handle) {
    WireFormat.require(
        handle.length == IpcCalls.HANDLE_BYTES,
        "EventDescriptor",
        "handle bytes",
        handle.length,
        IpcCalls.HANDLE_BYTES);
    this.blockingSync = blockingSync;
    this.process = process;
    this.deviceUuid = deviceUuid;
    this.handle = handle.clone();
  }

  /** Whether waiting for it blocks the thread. */
  public boolean blockingSync() {
    return blockingSync;
  }

  public UUID deviceUuid() {
    return deviceUuid;
  }

  /** The process that made the event. */
  public UUID process() {
    return process;
  }

  public byte[] handle() {
    return handle.clone();
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof ExportedEvent that
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
    return "EventDescriptor[blockingSync=%b, handle=%s…]"
        .formatted(blockingSync, HexFormat.of().formatHex(handle, 0, 8));
  }
}
