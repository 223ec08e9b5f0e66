package io.cuvette.driver;

import org.jspecify.annotations.Nullable;

/**
 * A CUDA driver: the real one, the simulated one, or a decorator of either. Its calls are in parts,
 * one for each subject; a part is the same object for as long as the driver lives.
 *
 * <p>Handles and addresses are {@code long}s, sizes are bytes and never negative, the device is
 * always a parameter and never "the current one", and a failure is a thrown {@link CudaException};
 * "not ready" is a {@code boolean}. A method sets whatever context it needs by itself. Callers
 * check their arguments first; an implementation reports what it finds wrong as the driver does.
 *
 * <p>Thread-safe, from platform and virtual threads alike.
 */
public interface CudaDriver extends AutoCloseable {

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
  DeviceCalls devices();

  /** The calls about allocations and pointers. */
  MemoryCalls memory();

  /** The calls about copies and fills. */
  TransferCalls transfers();

  /** The calls about the pools of the driver. */
  PoolCalls pools();

  /** The calls about allocations in stream order. */
  OrderedCalls ordered();

  /** The calls about streams. */
  StreamCalls streams();

  /** The calls about events. */
  EventCalls events();

  /** The calls about captures and graphs. */
  CaptureCalls captures();

  /** The calls about memory and events of other processes. */
  IpcCalls sharing();

  /** The calls about allocator functions in C. */
  NativeCalls natives();

  /**
   * Gives back what the driver itself holds (primary contexts; a simulator's memory). Memory,
   * streams and events should be gone by then. Idempotent.
   */
  @Override
  void close();
}
