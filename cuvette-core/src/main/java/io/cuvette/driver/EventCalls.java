package io.cuvette.driver;

/** Driver calls about events. Thread-safe. */
public interface EventCalls {

  /**
   * Creates an event (cuEventCreate).
   *
   * @param device the device, from 0
   * @param flags CUevent_flags: 1 blocking sync, 2 no timing, 4 interprocess
   * @return the handle of the event
   * @throws CudaException if the driver reports an error
   */
  long eventCreate(int device, int flags);

  /**
   * Destroys an event; waits already queued on it still work (cuEventDestroy).
   *
   * @param device the device, from 0
   * @param event the handle of the event
   * @throws CudaException if the driver reports an error
   */
  void eventDestroy(int device, long event);

  /**
   * Records the event in stream order (cuEventRecord).
   *
   * @param device the device, from 0
   * @param event the handle of the event
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void eventRecord(int device, long event, long stream);

  /**
   * {@return whether the last record has completed; true for an event never recorded
   * (cuEventQuery)}
   *
   * @param device the device, from 0
   * @param event the handle of the event
   * @throws CudaException if the driver reports an error
   */
  boolean eventQuery(int device, long event);

  /**
   * Waits for the last record; returns at once if there was none (cuEventSynchronize).
   *
   * @param device the device, from 0
   * @param event the handle of the event
   * @throws CudaException if the driver reports an error
   */
  void eventSynchronize(int device, long event);

  /**
   * {@return the time between two recorded events in milliseconds (cuEventElapsedTime)}
   *
   * @param device the device, from 0
   * @param start the handle of the earlier event
   * @param end the handle of the later event
   * @throws CudaException NOT_READY if either is not done, INVALID_HANDLE if either was never
   *     recorded or has no timing
   */
  float eventElapsedTime(int device, long start, long end);
}
