package io.cuvette.driver;

/**
 * Calls about the handles of libraries for linear algebra, which are loaded when first used. A
 * library that is missing is FILE_NOT_FOUND, with where it was looked for and what to install. A
 * handle is used by one thread at a time. Thread-safe.
 */
public interface MathCalls {

  /**
   * {@return the version of a library, such as {@code 13.0.2} (cublasGetProperty,
   * cusolverGetProperty)}
   *
   * @param library the library
   * @throws CudaException if the library is missing
   */
  String mathLibraryVersion(MathLibrary library);

  /**
   * Creates a handle for a device (cublasCreate, cusolverDnCreate, cusolverSpCreate).
   *
   * @param library the library
   * @param device the device, from 0
   * @return the handle
   * @throws CudaException if the library is missing or reports an error
   */
  long mathHandleCreate(MathLibrary library, int device);

  /**
   * Destroys a handle; waits for the work of the device (cublasDestroy, cusolverDnDestroy,
   * cusolverSpDestroy).
   *
   * @param library the library
   * @param device the device, from 0
   * @param handle the handle
   * @throws CudaException if the library reports an error
   */
  void mathHandleDestroy(MathLibrary library, int device, long handle);

  /**
   * Has what is called with a handle queue its work in a stream from now on. cuBLAS also goes back
   * to a workspace of its own (cublasSetStream, cusolverDnSetStream, cusolverSpSetStream).
   *
   * @param library the library
   * @param device the device, from 0
   * @param handle the handle
   * @param stream the handle of the stream
   * @throws CudaException if the library reports an error
   */
  void mathHandleSetStream(MathLibrary library, int device, long handle, long stream);

  /**
   * Has what is called with a handle of cuBLAS use some memory of the device (cublasSetWorkspace).
   *
   * @param device the device, from 0
   * @param handle the handle
   * @param address the first address, a multiple of 256
   * @param bytes the size in bytes
   * @throws CudaException if the library reports an error
   */
  void mathHandleSetWorkspace(int device, long handle, long address, long bytes);

  /**
   * Queues a product of matrices in the stream of a handle of cuBLAS (cublasGemmEx_64,
   * cublasGemmStridedBatchedEx_64). C has no bytes in common with the others.
   *
   * @param device the device, from 0
   * @param handle the handle
   * @param product what is multiplied
   * @param c the address of the first matrix C
   * @param a the address of the first matrix A
   * @param b the address of the first matrix B
   * @throws CudaException if the library reports an error, or lacks the function
   */
  void gemm(int device, long handle, MatrixProduct product, long c, long a, long b);
}
