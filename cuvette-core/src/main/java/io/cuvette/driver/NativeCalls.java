package io.cuvette.driver;

/**
 * Calls of allocator functions written in C, with the device current on the calling thread.
 * Thread-safe if the functions are.
 */
public interface NativeCalls {

  /**
   * Calls {@code void* f(void* parameter, size_t bytes, int device)}; 0 is NULL.
   *
   * @param function the address of the C function
   * @param parameter the first argument of the function
   * @param bytes the size in bytes
   * @param device the device that is current for the function, from 0
   * @return the address that the function returns, 0 for NULL
   * @throws CudaException if the driver reports an error
   */
  long callMalloc(long function, long parameter, long bytes, int device);

  /**
   * Calls {@code void f(void* parameter, void* address, int device)}.
   *
   * @param function the address of the C function
   * @param parameter the first argument of the function
   * @param address the address to free
   * @param device the device that is current for the function, from 0
   * @throws CudaException if the driver reports an error
   */
  void callFree(long function, long parameter, long address, int device);
}
