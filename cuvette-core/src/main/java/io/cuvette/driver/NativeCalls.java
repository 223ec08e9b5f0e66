package io.cuvette.driver;

/**
 * Calls of allocator functions that somebody else wrote in C, with the device made current on the
 * calling thread. Thread-safe if the functions are.
 */
public interface NativeCalls {

  /** Calls {@code void* f(void* parameter, size_t bytes, int device)}; 0 is NULL. */
  long callMalloc(long function, long parameter, long bytes, int device);

  /** Calls {@code void f(void* parameter, void* address, int device)}. */
  void callFree(long function, long parameter, long address, int device);
}
