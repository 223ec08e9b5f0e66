package io.cuvette.sim;

import java.lang.foreign.MemorySegment;
import java.util.function.IntUnaryOperator;
import java.util.function.LongUnaryOperator;

/**
 * One thread of a kernel on the simulated device: where it is, its parameters, and the memory that
 * it can reach. Used by the {@link KernelFunction} that is given it alone.
 *
 * <p>One thread of a device runs at a time. Which is next is chosen by the seed: at the start and
 * at the end of a thread, at each barrier, and now and then at an access to global memory. So work
 * that lacks a barrier, or should be atomic, gives wrong results under some seeds. Blocks that are
 * not of one cluster, nor of a cooperative launch, run one after the other, in an order of the
 * seed.
 *
 * <p>Access to memory that is not there, or that the device may not reach, ends the launch: the
 * device fails with ILLEGAL_ADDRESS, or MISALIGNED_ADDRESS, as a GPU does. The parameter of a
 * number that the kernel does not have, or that is of another size, and a barrier that some threads
 * of the block never reach, fail it with LAUNCH_FAILED, and accesses that wait in vain with
 * LAUNCH_TIMEOUT.
 */
public interface KernelThread {
  /** {@return threadIdx.x} */
  int threadX();

  /** {@return threadIdx.y} */
  int threadY();

  /** {@return threadIdx.z} */
  int threadZ();

  /** {@return blockIdx.x} */
  int blockX();

  /** {@return blockIdx.y} */
  int blockY();

  /** {@return blockIdx.z} */
  int blockZ();

  /** {@return blockDim.x} */
  int blockDimX();

  /** {@return blockDim.y} */
  int blockDimY();

  /** {@return blockDim.z} */
  int blockDimZ();

  /** {@return gridDim.x, in blocks} */
  int gridDimX();

  /** {@return gridDim.y, in blocks} */
  int gridDimY();

  /** {@return gridDim.z, in blocks} */
  int gridDimZ();

  /** {@return which thread of the block this is, from 0, where x runs fastest} */
  int rank();

  /** {@return which thread this is along x: blockIdx.x · blockDim.x + threadIdx.x} */
  default long globalX() {
    return (long) blockX() * blockDimX() + threadX();
  }

  /** {@return which block of its cluster this is, from 0, where x runs fastest} */
  int clusterRank();

  /** {@return the number of blocks in a cluster; 1 without clusters} */
  int clusterSize();

  /**
   * {@return a parameter that is an address}
   *
   * @param index the parameter, from 0
   */
  long pointer(int index);

  /**
   * {@return a parameter of 32 bits}
   *
   * @param index the parameter, from 0
   */
  int intValue(int index);

  /**
   * {@return a parameter of 64 bits}
   *
   * @param index the parameter, from 0
   */
  long longValue(int index);

  /**
   * {@return a floating-point parameter of 32 bits}
   *
   * @param index the parameter, from 0
   */
  float floatValue(int index);

  /**
   * {@return a floating-point parameter of 64 bits}
   *
   * @param index the parameter, from 0
   */
  double doubleValue(int index);

  /**
   * {@return the bytes of a parameter of any type, read-only, aligned to 8 bytes}
   *
   * @param index the parameter, from 0
   */
  MemorySegment struct(int index);

  /**
   * {@return the byte at an address}
   *
   * @param address the address
   */
  byte getByte(long address);

  /**
   * {@return the 32 bits at an address}
   *
   * @param address the address, a multiple of 4
   */
  int getInt(long address);

  /**
   * {@return the 64 bits at an address}
   *
   * @param address the address, a multiple of 8
   */
  long getLong(long address);

  /**
   * {@return the floating-point number of 32 bits at an address}
   *
   * @param address the address, a multiple of 4
   */
  default float getFloat(long address) {
    return Float.intBitsToFloat(getInt(address));
  }

  /**
   * {@return the floating-point number of 64 bits at an address}
   *
   * @param address the address, a multiple of 8
   */
  default double getDouble(long address) {
    return Double.longBitsToDouble(getLong(address));
  }

  /**
   * Writes a byte.
   *
   * @param address the address
   * @param value the value
   */
  void setByte(long address, byte value);

  /**
   * Writes 32 bits.
   *
   * @param address the address, a multiple of 4
   * @param value the value
   */
  void setInt(long address, int value);

  /**
   * Writes 64 bits.
   *
   * @param address the address, a multiple of 8
   * @param value the value
   */
  void setLong(long address, long value);

  /**
   * Writes a floating-point number of 32 bits.
   *
   * @param address the address, a multiple of 4
   * @param value the value
   */
  default void setFloat(long address, float value) {
    setInt(address, Float.floatToRawIntBits(value));
  }

  /**
   * Writes a floating-point number of 64 bits.
   *
   * @param address the address, a multiple of 8
   * @param value the value
   */
  default void setDouble(long address, double value) {
    setLong(address, Double.doubleToRawLongBits(value));
  }

  /**
   * Reads bytes from an address of any alignment on, in one piece.
   *
   * @param address the address
   * @param target where they go: as many as it has
   */
  void getBytes(long address, MemorySegment target);

  /**
   * Writes bytes from an address of any alignment on, in one piece.
   *
   * @param address the address
   * @param source what is written
   */
  void setBytes(long address, MemorySegment source);

  /**
   * Changes 32 bits atomically, as atomicMin, atomicExch and their like do.
   *
   * @param address the address, a multiple of 4
   * @param change makes the new value of the old one; it must not use this thread
   * @return the old value
   */
  int atomicUpdate(long address, IntUnaryOperator change);

  /**
   * Changes 64 bits atomically.
   *
   * @param address the address, a multiple of 8
   * @param change makes the new value of the old one; it must not use this thread
   * @return the old value
   */
  long atomicUpdateLong(long address, LongUnaryOperator change);

  /**
   * Adds to 32 bits (atomicAdd).
   *
   * @param address the address, a multiple of 4
   * @param value what is added
   * @return the old value
   */
  default int atomicAdd(long address, int value) {
    return atomicUpdate(address, old -> old + value);
  }

  /**
   * Adds to a floating-point number of 32 bits (atomicAdd).
   *
   * @param address the address, a multiple of 4
   * @param value what is added
   * @return the old value
   */
  default float atomicAdd(long address, float value) {
    return Float.intBitsToFloat(
        atomicUpdate(address, old -> Float.floatToRawIntBits(Float.intBitsToFloat(old) + value)));
  }

  /**
   * Exchanges 32 bits if they are what is expected (atomicCAS).
   *
   * @param address the address, a multiple of 4
   * @param expected the value that is replaced
   * @param value the new value
   * @return the old value
   */
  default int atomicCas(long address, int expected, int value) {
    return atomicUpdate(address, old -> old == expected ? value : old);
  }

  /**
   * {@return the shared memory of the block: first what the kernel declares ({@link
   * SimulatedKernel#sharedBytes}), then what the launch adds} It starts with bytes of 0xA5. Aligned
   * to 8 bytes.
   */
  MemorySegment shared();

  /**
   * {@return the shared memory of a block of the cluster}
   *
   * @param rank the block, from 0
   */
  MemorySegment shared(int rank);

  /** Waits for all threads of the block (__syncthreads). */
  void syncThreads();

  /** Waits for all threads of the cluster. */
  void syncCluster();

  /** Waits for all threads of the grid, which a cooperative launch alone allows. */
  void syncGrid();

  /**
   * Sets the value that a conditional node of a graph reads (cudaGraphSetConditional). A condition
   * that is not there fails the launch with LAUNCH_FAILED.
   *
   * @param condition the condition, which the kernel was given as a parameter of 64 bits
   * @param value the value
   */
  void setConditional(long condition, int value);
}
