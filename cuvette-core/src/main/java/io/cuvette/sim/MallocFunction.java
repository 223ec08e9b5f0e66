package io.cuvette.sim;

/**
 * Stands for {@code void* f(void* parameter, size_t bytes, int device)} on the simulated device.
 */
@FunctionalInterface
public interface MallocFunction {

  /**
   * Allocates memory on a device.
   *
   * @param parameter the value that the program gave with the function
   * @param bytes the size in bytes
   * @param device the device, from 0
   * @return the address, 0 for NULL
   */
  long malloc(long parameter, long bytes, int device);
}
