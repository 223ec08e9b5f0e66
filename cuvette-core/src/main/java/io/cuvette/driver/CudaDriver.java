package io.cuvette.driver;

import org.jspecify.annotations.Nullable;

/**
 * A CUDA driver: the real one, the simulated one, or a decorator of either.
 *
 * <p>Handles and addresses are {@code long}s, sizes are bytes and never negative, the device is
 * always a parameter and never "the current one", and a failure is a thrown {@link CudaException};
 * "not ready" is a {@code boolean}. A method sets whatever context it needs by itself. Callers
 * check their arguments first; an implementation reports what it finds wrong as the driver does.
 *
 * <p>Thread-safe, from platform and virtual threads alike.
 */
public interface CudaDriver
    extends DeviceCalls,
        MemoryCalls,
        TransferCalls,
        PoolCalls,
        OrderedCalls,
        StreamCalls,
        EventCalls,
        CaptureCalls,
        IpcCalls,
        NativeCalls,
        AutoCloseable {

  /**
   * The name of the driver and its decorators, such as {@code ffm}, {@code sim}, {@code
   * faults(sim)}.
   */
  String name();

  /** Whether the devices are simulated: times are then simulated too. */
  boolean isSimulated();

  /** Who wants to know what becomes of the memory above the driver; null if nobody does. */
  default @Nullable BlockListener blockListener() {
    return null;
  }

  /** The calls about devices and contexts. */
  default DeviceCalls devices() {
    return this;
  }

  /** The calls about allocations and pointers. */
  default MemoryCalls memory() {
    return this;
  }

  /** The calls about copies and fills. */
  default TransferCalls transfers() {
    return this;
  }

  /** The calls about the pools of the driver. */
  default PoolCalls pools() {
    return this;
  }

  /** The calls about allocations in stream order. */
  default OrderedCalls ordered() {
    return this;
  }

  /** The calls about streams. */
  default StreamCalls streams() {
    return this;
  }

  /** The calls about events. */
  default EventCalls events() {
    return this;
  }

  /** The calls about captures and graphs. */
  default CaptureCalls captures() {
    return this;
  }

  /** The calls about memory and events of other processes. */
  default IpcCalls sharing() {
    return this;
  }

  /** The calls about allocator functions in C. */
  default NativeCalls natives() {
    return this;
  }

  /**
   * Gives back what the driver itself holds (primary contexts; a simulator's memory). Memory,
   * streams and events should be gone by then. Idempotent.
   */
  @Override
  void close();
}
