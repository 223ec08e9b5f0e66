package io.cuvette.driver;

/**
 * Driver calls about libraries of kernels: code that is loaded once and serves every device. A
 * library, and the kernels found in it, belong to no device; unloading the library ends its
 * kernels. Whoever uses a handle keeps its library loaded until the call returns. Thread-safe.
 */
public interface KernelCalls {

  /**
   * Loads code: PTX, a cubin or a fatbin, without options (cuLibraryLoadData).
   *
   * @param image the code; PTX may end with a 0 or not
   * @return the handle of the library
   * @throws CudaException if the driver reports an error
   */
  long libraryLoadData(byte[] image);

  /**
   * Unloads a library, none of whose kernels may run (cuLibraryUnload).
   *
   * @param library the handle of the library
   * @throws CudaException if the driver reports an error
   */
  void libraryUnload(long library);

  /**
   * Finds a kernel by its name, the same handle each time (cuLibraryGetKernel).
   *
   * @param library the handle of the library
   * @param name the name as it is in the code, mangled unless it has C linkage
   * @return the handle of the kernel
   * @throws CudaException if the driver reports an error
   */
  long libraryGetKernel(long library, String name);

  /**
   * {@return the number of kernels in a library (cuLibraryGetKernelCount, CUDA 12.4)}
   *
   * @param library the handle of the library
   * @throws CudaException if the driver reports an error
   */
  int libraryGetKernelCount(long library);

  /**
   * {@return the handles of the kernels in a library, in no particular order; 0 in the places that
   * are more than there are kernels (cuLibraryEnumerateKernels, CUDA 12.4)}
   *
   * @param library the handle of the library
   * @param count the number of places, at least 1
   * @throws CudaException if the driver reports an error
   */
  long[] libraryEnumerateKernels(long library, int count);

  /**
   * {@return the name of a kernel as it is in the code (cuKernelGetName, CUDA 12.3)}
   *
   * @param kernel the handle of the kernel
   * @throws CudaException if the driver reports an error
   */
  String kernelGetName(long kernel);

  /**
   * {@return where a parameter of a kernel lies; INVALID_VALUE for an index behind the last, which
   * is how they are counted (cuKernelGetParamInfo, CUDA 12.4)}
   *
   * @param kernel the handle of the kernel
   * @param index the parameter, from 0
   * @throws CudaException if the driver reports an error
   */
  KernelParameter kernelGetParamInfo(long kernel, int index);
}
