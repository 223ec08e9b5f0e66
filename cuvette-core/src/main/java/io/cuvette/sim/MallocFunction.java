package io.cuvette.sim;

/**
 * Stands for {@code void* f(void* parameter, size_t bytes, int device)} on the simulated device.
 */
@FunctionalInterface
public interface MallocFunction {

  /** Gives the address of memory on a device, or 0 for NULL: there is none. */
  long malloc(long parameter, long bytes, int device);
}
