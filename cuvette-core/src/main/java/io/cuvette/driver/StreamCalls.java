package io.cuvette.driver;

/**
 * Driver calls about streams. A stream is a handle made here, a foreign handle, or one of 0 (null),
 * 1 (legacy default) and 2 (the per-thread default of the calling OS thread). Thread-safe.
 */
public interface StreamCalls {

  /**
   * Creates a stream (cuStreamCreateWithPriority).
   *
   * @param device the device, from 0
   * @param flags 0 blocking with the legacy default stream, 1 non-blocking
   * @param priority the priority; lower numbers go first
   * @return the handle of the stream
   * @throws CudaException if the driver reports an error
   */
  long streamCreateWithPriority(int device, int flags, int priority);

  /**
   * Destroys a stream; its queued work still completes (cuStreamDestroy).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void streamDestroy(int device, long stream);

  /**
   * {@return the priority of a stream (cuStreamGetPriority)}
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  int streamGetPriority(int device, long stream);

  /**
   * {@return the flags of a stream, 1 = non-blocking (cuStreamGetFlags)} The query invalidates a
   * capture that the stream takes part in.
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  int streamGetFlags(int device, long stream);

  /**
   * {@return an identity that is never used twice in a process, unlike the handle (cuStreamGetId)}
   * The query invalidates a capture that the stream takes part in.
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  long streamGetId(int device, long stream);

  /**
   * {@return the device of a stream (cuStreamGetCtx with cuCtxGetDevice)}
   *
   * @param device answers for the handles 0, 1 and 2
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  int streamGetDevice(int device, long stream);

  /**
   * {@return whether all work of the stream has completed (cuStreamQuery)}
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  boolean streamQuery(int device, long stream);

  /**
   * Waits for all work of the stream (cuStreamSynchronize).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void streamSynchronize(int device, long stream);

  /**
   * Makes later work of the stream wait for an event, which may be of another device
   * (cuStreamWaitEvent).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @param event the handle of the event
   * @throws CudaException if the driver reports an error
   */
  void streamWaitEvent(int device, long stream, long event);

  /**
   * Runs a function on a thread of the driver once the work queued so far is done
   * (cuLaunchHostFunc). The function must return quickly, must not call the driver and must not
   * throw. After an error of the device it may never run.
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @param function the function, run once
   * @throws CudaException if the driver reports an error
   */
  void launchHostFunc(int device, long stream, Runnable function);

  /**
   * Makes later work of the stream wait until a word of memory, which the host or a device may
   * write, compares with a value (cuStreamWaitValue32).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @param address of 4 aligned bytes of device memory or page-locked host memory, not managed
   * @param value the value that the word is compared with
   * @param flags 0 until {@code word - value >= 0}, 1 until they are equal, 2 until they have a bit
   *     in common, 3 until a bit is 0 in both
   * @throws CudaException if the driver reports an error
   */
  void streamWaitValue32(int device, long stream, long address, int value, int flags);
}
