package io.cuvette.driver;

/** Driver calls about events. Thread-safe. */
public interface EventCalls {

  /**
   * Makes an event, CUevent_flags: 1 blocking sync, 2 no timing, 4 interprocess (cuEventCreate).
   */
  long eventCreate(int device, int flags);

  /** Destroys an event; waits already queued on it still work (cuEventDestroy). */
  void eventDestroy(int device, long event);

  /** Records the event in stream order (cuEventRecord). */
  void eventRecord(int device, long event, long stream);

  /** Whether the last record is done; true for an event never recorded (cuEventQuery). */
  boolean eventQuery(int device, long event);

  /** Waits for the last record; returns at once if there was none (cuEventSynchronize). */
  void eventSynchronize(int device, long event);

  /**
   * Milliseconds between two recorded events (cuEventElapsedTime).
   *
   * @throws CudaException NOT_READY if either is not done, INVALID_HANDLE if either was never
   *     recorded or has no timing
   */
  float eventElapsedTime(int device, long start, long end);
}
