package io.cuvette.ffm;

import io.cuvette.driver.IpcCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The bytes that name memory and events to other processes. Thread-safe. */
final class IpcHandles {
  private IpcHandles() {}

  /** Room for the driver to write a handle into. */
  static MemorySegment room() {
    return Arena.ofAuto().allocate(Layouts.IPC_HANDLE.byteSize(), Long.BYTES);
  }

  /**
   * A handle to pass.
   *
   * @throws IllegalArgumentException if it is longer or shorter than the driver reads
   */
  static MemorySegment of(byte[] handle) {
    if (handle.length != IpcCalls.HANDLE_BYTES) {
      throw new IllegalArgumentException(
          "handle: %d bytes (expected: %d)".formatted(handle.length, IpcCalls.HANDLE_BYTES));
    }
    return room().copyFrom(MemorySegment.ofArray(handle));
  }

  /** A handle that the driver has written. */
  static byte[] bytes(MemorySegment handle) {
    return handle.toArray(ValueLayout.JAVA_BYTE);
  }
}
