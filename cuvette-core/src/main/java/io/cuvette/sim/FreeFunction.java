package io.cuvette.sim;

/**
 * Stands for {@code void f(void* parameter, void* address, int device)} on the simulated device.
 */
@FunctionalInterface
public interface FreeFunction {

  /**
   * Takes back memory that the {@link MallocFunction} beside it gave.
   *
   * @param parameter the value that the program gave with the function
   * @param address the address to free
   * @param device the device, from 0
   */
  void free(long parameter, long address, int device);
}
