package io.cuvette.sim;

/**
 * Stands for {@code void f(void* parameter, void* address, int device)} on the simulated device.
 */
@FunctionalInterface
public interface FreeFunction {

  /** Takes back memory that the {@link MallocFunction} beside it gave. */
  void free(long parameter, long address, int device);
}
