package io.cuvette.internal.loan;

import io.cuvette.DeviceAttribute;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.base.OutOfMemoryText;
import io.cuvette.internal.block.Addresses;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.PlainBlock;
import io.cuvette.internal.lifetime.ArenaHold;
import io.cuvette.internal.lifetime.HostViews;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.UsedMemory;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;

/**
 * Memory of the program that is page-locked as long as a buffer stands for it. Its arena is held
 * until then, so that neither a device nor the driver meets memory that is somebody else's by now.
 */
public final class RegisteredMemory {
  private static final int PORTABLE_AND_MAPPED = 3;
  private static final int READ_ONLY = 8;

  private final MemorySegment memory;
  private final Device device;
  private final CudaDriver driver;
  private final HostViews<UsedMemory> views;
  private final Runnable letGo;

  private RegisteredMemory(MemorySegment memory, OpenStream stream, Runnable letGo) {
    this.memory = memory;
    this.device = stream.on();
    this.driver = device.context();
    this.views = stream.state.streams.views();
    this.letGo = letGo;
  }

  /**
   * Page-locks memory, and has a buffer own that (cuMemHostRegister).
   *
   * @param buffer the buffer, which has no block yet
   */
  public static void own(Faces faces, Face buffer, MemorySegment memory, OpenStream stream) {
    check(memory);
    DirectMemory.check(memory.byteSize(), stream);
    checkDevice(memory, stream.on());
    Runnable letGo = ArenaHold.of("segment", memory);
    try {
      RegisteredMemory registered = new RegisteredMemory(memory, stream, letGo);
      boolean _ = stream.on().session().gate().make(() -> registered.own(faces, buffer, stream));
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, letGo); // which needs no heap
      throw e;
    }
  }

  private static void check(MemorySegment memory) {
    if (!memory.isNative()) {
      throw new IllegalArgumentException(
          "segment: heap segment of %d bytes, which the collector may move (expected: native memory)"
              .formatted(memory.byteSize()));
    }
    if (memory.byteSize() == 0) {
      throw new IllegalArgumentException("segment: 0 bytes (expected: >= 1)");
    }
  }

  private static void checkDevice(MemorySegment memory, Device device) {
    require(device, DeviceAttribute.HOST_REGISTER_SUPPORTED);
    require(device, DeviceAttribute.CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    if (memory.isReadOnly()) {
      require(device, DeviceAttribute.READ_ONLY_HOST_REGISTER_SUPPORTED);
    }
  }

  private static void require(Device device, DeviceAttribute attribute) {
    if (device.attribute(attribute) == 0) {
      throw new UnsupportedOperationException(
          "registerHost on %s: %s is 0 (expected: 1)".formatted(device, attribute));
    }
  }

  private boolean own(Faces faces, Face buffer, OpenStream stream) {
    int flags = memory.isReadOnly() ? PORTABLE_AND_MAPPED | READ_ONLY : PORTABLE_AND_MAPPED;
    LongConsumer end = _ -> end(); // before there is something to end
    try {
      driver.memory().memHostRegister(device.id(), memory, flags);
    } catch (CudaException e) {
      if (Once.mayBeDone(e)) {
        Failures.runAfter(e, this::unregisterIfRegistered);
      }
      throw explained(e);
    }
    PlainBlock.ownRegistered(faces, buffer, memory, stream, end);
    return true;
  }

  private RuntimeException explained(CudaException e) {
    RuntimeException explained =
        switch (e.status()) {
          case OUT_OF_MEMORY ->
              new OutOfPinnedMemoryException(
                  memory.byteSize(),
                  e.call(),
                  OutOfMemoryText.ofPinned(memory.byteSize(), e.call()));
          case HOST_MEMORY_ALREADY_REGISTERED ->
              new IllegalStateException(
                  "segment: %s is page-locked already, in part or as a whole (expected: pageable memory)"
                      .formatted(memory));
          case INVALID_VALUE, NOT_PERMITTED, NOT_SUPPORTED ->
              new IllegalArgumentException(
                  ("segment: the driver cannot page-lock %s: %s (expected: memory that is there and"
                          + " may be written, or a read-only segment of it; of a file, no longer"
                          + " than that is)")
                      .formatted(memory, e.getMessage()));
          default -> e;
        };
    if (explained != e) {
      explained.initCause(e);
    }
    return explained;
  }

  /** The arena is held as long as the driver has the memory. */
  private void end() {
    try {
      driver.memory().memHostUnregister(device.id(), memory.address());
    } catch (CudaException e) {
      if (Once.mayBeDone(e)) {
        ended();
      }
      throw e;
    }
    ended();
  }

  private void ended() {
    views.unregister(memory);
    letGo.run();
  }

  private void unregisterIfRegistered() {
    if (Addresses.isPageLocked(device, memory.address())) {
      driver.memory().memHostUnregister(device.id(), memory.address());
    }
  }
}
