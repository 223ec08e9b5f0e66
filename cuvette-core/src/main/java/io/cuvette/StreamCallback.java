package io.cuvette;

import io.cuvette.driver.CudaStatus;

/**
 * What runs among the work of a stream: after the work before it, and before the work after it.
 *
 * @param <T> the argument's type
 * @see CudaStream#addCallback(StreamCallback, Object)
 */
@FunctionalInterface
public interface StreamCallback<T> {
  /**
   * Called on a thread of this library; may block and may call CUDA.
   *
   * @param stream the stream
   * @param argument the argument that was given with the callback
   */
  void call(CudaStream stream, T argument);

  /**
   * The same with the status of the stream, which also runs when the work before it failed.
   *
   * @param <T> the argument's type
   * @see CudaStream#addCallback(WithStatus, Object)
   */
  @FunctionalInterface
  interface WithStatus<T> {
    /**
     * Called once, on a thread of this library; may block and, with {@link CudaStatus#SUCCESS}, may
     * call CUDA.
     *
     * @param stream the stream
     * @param status SUCCESS; the error of the device; or DEINITIALIZED if the Cuda was closed first
     * @param argument the argument that was given with the callback
     */
    void call(CudaStream stream, CudaStatus status, T argument);
  }
}
