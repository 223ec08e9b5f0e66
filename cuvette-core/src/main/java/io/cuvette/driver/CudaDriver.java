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
   * {@return the name of the driver and its decorators, such as {@code ffm}, {@code sim}, {@code
   * faults(sim)}}
   */
  String name();

  /** {@return whether the devices are simulated: times are then simulated too} */
  boolean isSimulated();

  /**
   * {@return the listener for blocks and for accesses of the host above the driver; null if there
   * is none}
   */
  default @Nullable BlockListener blockListener() {
    return null;
  }

  /** {@return the calls about devices and contexts} */
  DeviceCalls devices();

  /** {@return the calls about allocations and pointers} */
  MemoryCalls memory();

  /** {@return the calls about copies and fills} */
  TransferCalls transfers();

  /** {@return the calls about the pools of the driver} */
  PoolCalls pools();

  /** {@return the calls about allocations in stream order} */
  OrderedCalls ordered();

  /** {@return the calls about streams} */
  StreamCalls streams();

  /** {@return the calls about events} */
  EventCalls events();

  /** {@return the calls about captures} */
  CaptureCalls captures();

  /** {@return the calls about graphs} */
  GraphCalls graphs();

  /** {@return the calls about memory and events of other processes} */
  IpcCalls sharing();

  /** {@return the calls about virtual memory} */
  VirtualCalls virtual();

  /** {@return the calls about libraries of kernels} */
  KernelCalls kernels();

  /** {@return the calls about handles of libraries} */
  MathCalls math();

  /** {@return the calls about allocator functions in C} */
  NativeCalls natives();

  /**
   * Releases what the driver itself holds (primary contexts; a simulator's memory). Memory, streams
   * and events should be freed and destroyed before. Idempotent.
   */
  @Override
  void close();
}
