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

  /**
   * Queues a kernel (cuLaunchKernelEx). The arguments are copied before this returns.
   *
   * @param device the device of the stream, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @param kernel the handle of the kernel
   * @param shape the extent of the grid
   * @param parameters the arguments
   * @throws CudaException if the driver reports an error
   */
  void launchKernel(
      int device, long stream, long kernel, LaunchShape shape, LaunchParameters parameters);

  /**
   * {@return an attribute of a kernel on a device (cuKernelGetAttribute)}
   *
   * @param attribute its number in cuda.h (CUfunction_attribute)
   * @param kernel the handle of the kernel
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  int kernelGetAttribute(int attribute, long kernel, int device);

  /**
   * Sets an attribute of a kernel on a device (cuKernelSetAttribute).
   *
   * @param attribute its number in cuda.h (CUfunction_attribute)
   * @param value the new value
   * @param kernel the handle of the kernel
   * @param device the device, from 0
   * @throws CudaException if the driver reports an error
   */
  void kernelSetAttribute(int attribute, int value, long kernel, int device);

  /**
   * {@return the blocks of a kernel that a multiprocessor can run at once
   * (cuOccupancyMaxActiveBlocksPerMultiprocessor)}
   *
   * @param device the device, from 0
   * @param kernel the handle of the kernel
   * @param blockThreads the threads of a block
   * @param dynamicSharedBytes the dynamic shared memory of a block, in bytes
   * @throws CudaException if the driver reports an error
   */
  int occupancyMaxActiveBlocksPerMultiprocessor(
      int device, long kernel, int blockThreads, long dynamicSharedBytes);

  /**
   * {@return the block size with which a kernel fills a device best
   * (cuOccupancyMaxPotentialBlockSize)}
   *
   * @param device the device, from 0
   * @param kernel the handle of the kernel
   * @param dynamicSharedBytes the dynamic shared memory of a block, in bytes
   * @param blockLimit the most threads of a block; 0 for no limit
   * @throws CudaException if the driver reports an error
   */
  PotentialBlockSize occupancyMaxPotentialBlockSize(
      int device, long kernel, long dynamicSharedBytes, int blockLimit);

  /**
   * {@return the dynamic shared memory that a block can have if so many run on a multiprocessor at
   * once, in bytes (cuOccupancyAvailableDynamicSMemPerBlock)}
   *
   * @param device the device, from 0
   * @param kernel the handle of the kernel
   * @param blocks the blocks on a multiprocessor
   * @param blockThreads the threads of a block
   * @throws CudaException if the driver reports an error
   */
  long occupancyAvailableDynamicSMemPerBlock(int device, long kernel, int blocks, int blockThreads);

  /**
   * {@return the clusters of a kernel that a device can run at once (cuOccupancyMaxActiveClusters)}
   *
   * @param device the device, from 0
   * @param kernel the handle of the kernel
   * @param shape the extent of the grid, the cluster among it
   * @throws CudaException if the driver reports an error
   */
  int occupancyMaxActiveClusters(int device, long kernel, LaunchShape shape);

  /**
   * {@return the most blocks of a cluster with which a kernel can be launched
   * (cuOccupancyMaxPotentialClusterSize)}
   *
   * @param device the device, from 0
   * @param kernel the handle of the kernel
   * @param shape the extent of the grid, whose cluster is ignored
   * @throws CudaException if the driver reports an error
   */
  int occupancyMaxPotentialClusterSize(int device, long kernel, LaunchShape shape);
}
