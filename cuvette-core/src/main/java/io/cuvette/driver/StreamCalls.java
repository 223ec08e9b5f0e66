package io.cuvette.driver;

/**
 * Driver calls about streams. A stream is a handle made here, a foreign handle, or one of 0 (null),
 * 1 (legacy default) and 2 (the per-thread default of the calling OS thread). Thread-safe.
 */
public interface StreamCalls {

  /**
   * Makes a stream (cuStreamCreateWithPriority).
   *
   * @param flags 0 blocking with the legacy default stream, 1 non-blocking
   */
  long streamCreateWithPriority(int device, int flags, int priority);

  /** Destroys a stream; its queued work still completes (cuStreamDestroy). */
  void streamDestroy(int device, long stream);

  /** The priority of a stream (cuStreamGetPriority). */
  int streamGetPriority(int device, long stream);

  /**
   * The flags of a stream, 1 = non-blocking (cuStreamGetFlags). The question invalidates a capture
   * that the stream takes part in.
   */
  int streamGetFlags(int device, long stream);

  /**
   * An identity that is never used twice in a process, unlike the handle (cuStreamGetId). The
   * question invalidates a capture that the stream takes part in.
   */
  long streamGetId(int device, long stream);

  /**
   * The device of a stream (cuStreamGetCtx with cuCtxGetDevice).
   *
   * @param device answers for the handles 0, 1 and 2
   */
  int streamGetDevice(int device, long stream);

  /** Whether all work of the stream is done (cuStreamQuery). */
  boolean streamQuery(int device, long stream);

  /** Waits for all work of the stream (cuStreamSynchronize). */
  void streamSynchronize(int device, long stream);

  /**
   * Makes later work of the stream wait for an event, which may be of another device
   * (cuStreamWaitEvent).
   */
  void streamWaitEvent(int device, long stream, long event);

  /**
   * Runs a function on a thread of the driver once the work queued so far is done
   * (cuLaunchHostFunc). The function must return quickly, must not call the driver and must not
   * throw. After an error of the device it may never run.
   */
  void launchHostFunc(int device, long stream, Runnable function);

  /**
   * Makes later work of the stream wait until a word of memory, which the host or a device may
   * write, compares with a value (cuStreamWaitValue32).
   *
   * @param address of 4 aligned bytes of device memory or page-locked host memory, not managed
   * @param flags 0 until {@code word - value >= 0}, 1 until they are equal, 2 until they have a bit
   *     in common, 3 until a bit is 0 in both
   */
  void streamWaitValue32(int device, long stream, long address, int value, int flags);
}
