package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.PlainBlock;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadState;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Device memory from a pair of C functions: {@code void* malloc(void* parameter, size_t bytes, int
 * device)}, where NULL means out of memory, and {@code void free(void* parameter, void* address,
 * int device)}. Not pooled by itself. Thread-safe if the functions are.
 */
public final class NativeFunctionResource implements MemoryResource {
  private final MemorySegment malloc;
  private final MemorySegment free;
  private final MemorySegment parameter;
  private final @Nullable Object owner;

  /**
   * A resource of two functions.
   *
   * @param malloc the address of the allocating function
   * @param free the address of the freeing function
   * @param parameter given to both as it is; may be {@link MemorySegment#NULL}
   * @param owner kept reachable as long as the resource and its buffers, such as the library's
   *     arena; may be null
   */
  public NativeFunctionResource(
      MemorySegment malloc, MemorySegment free, MemorySegment parameter, @Nullable Object owner) {
    Objects.requireNonNull(malloc, "malloc");
    Objects.requireNonNull(free, "free");
    Objects.requireNonNull(parameter, "parameter");
    this.malloc = checkFunction("malloc", malloc);
    this.free = checkFunction("free", free);
    if (!parameter.isNative()) {
      throw new IllegalArgumentException(
          "parameter: %s (expected: a native segment, or NULL)".formatted(parameter));
    }
    this.parameter = parameter;
    this.owner = owner;
  }

  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    Checks.notNegative("bytes", bytes);
    OpenStream order = stream.core();
    Session session = order.on().session();
    order.checkOf(session);
    if (bytes == 0) {
      return (DeviceBuffer) DirectMemory.empty(BufferKind.DEVICE, order);
    }
    return session.gate().make(() -> allocate(bytes, order, order.on()));
  }

  private Buffer allocate(long bytes, OpenStream stream, Device device) {
    CudaDriver driver = device.context();
    ThreadState state = device.session().state();
    LongConsumer back = given -> give(driver, given, device);
    long address;
    state.checkReentry(this);
    state.enterNative(this);
    try {
      address =
          driver.natives().callMalloc(malloc.address(), parameter.address(), bytes, device.id());
    } finally {
      state.leave();
    }
    if (address == 0) {
      throw DirectMemory.explained(
          new CudaException(
              CudaStatus.OUT_OF_MEMORY,
              "malloc(bytes=%d, device=%d) = NULL".formatted(bytes, device.id()),
              "the native allocator returned NULL"),
          bytes,
          device);
    }
    return (DeviceBuffer)
        PlainBlock.own(BufferKind.DEVICE, address, bytes, stream, back, PlainBlock.By.OTHERS);
  }

  /** {@return the object that keeps the functions valid} */
  public @Nullable Object owner() {
    return owner;
  }

  @Override
  public String toString() {
    return "NativeFunctionResource[malloc=0x%x]".formatted(malloc.address());
  }

  private void give(CudaDriver driver, long address, Device device) {
    ThreadState state = device.session().state();
    state.enterNative(this);
    try {
      driver.natives().callFree(free.address(), parameter.address(), address, device.id());
    } finally {
      state.leave();
    }
  }

  private static MemorySegment checkFunction(String name, MemorySegment function) {
    if (!function.isNative() || function.address() == 0) {
      throw new IllegalArgumentException(
          "%s: %s (expected: the address of a function)".formatted(name, function));
    }
    return function;
  }
}
