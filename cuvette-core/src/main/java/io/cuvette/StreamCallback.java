package io.cuvette;

/**
 * What runs when the work of a stream is done.
 *
 * @param <T> the argument's type
 */
@FunctionalInterface
public interface StreamCallback<T> {
  /** Called on a thread of this library; may block and may call CUDA. */
  void call(CudaStream stream, T argument);
}
