package io.cuvette.driver;

/**
 * Driver calls about the capture of streams into graphs, as far as memory has to know about it.
 * Thread-safe.
 *
 * <p>No other call of the driver invalidates a capture that is going on beside it: calls that CUDA
 * counts as potentially unsafe run with the capture mode of the OS thread relaxed, and the mode is
 * what it was when they return (cuThreadExchangeStreamCaptureMode). What contradicts a capture
 * still does: to wait for a stream that is capturing or to query it, to use the legacy default
 * stream while a blocking stream is capturing, and {@link DeviceCalls#ctxSynchronize}, which
 * invalidates the captures of the whole device.
 */
public interface CaptureCalls {

  /**
   * Starts to capture a stream; mode 0 global, 1 thread-local, 2 relaxed (cuStreamBeginCapture).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @param mode CUstreamCaptureMode: 0 global, 1 thread-local, 2 relaxed
   * @throws CudaException if the driver reports an error
   */
  void streamBeginCapture(int device, long stream, int mode);

  /**
   * Ends the capture; the caller destroys the graph (cuStreamEndCapture).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @return the handle of the graph
   * @throws CudaException if the driver reports an error
   */
  long streamEndCapture(int device, long stream);

  /**
   * {@return the CUstreamCaptureStatus of a stream: 0 none, 1 active, 2 invalidated
   * (cuStreamIsCapturing)}
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  int streamIsCapturing(int device, long stream);

  /**
   * {@return the capture that a stream takes part in (cuStreamGetCaptureInfo)}
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  CaptureInfo streamGetCaptureInfo(int device, long stream);

  /**
   * Creates an object with one reference that reports when its last reference is gone
   * (cuUserObjectCreate). No Java code runs on a thread of the driver for that.
   *
   * @return the object, with one reference
   * @throws CudaException if the driver reports an error
   */
  UserObject userObjectCreate();

  /**
   * Releases the reference of {@link #userObjectCreate} (cuUserObjectRelease).
   *
   * @param object the handle of the user object
   * @throws CudaException if the driver reports an error
   */
  void userObjectRelease(long object);

  /**
   * Moves the reference of {@link #userObjectCreate} to a graph, which may still be captured. It is
   * dropped with the last of the graph, what is instantiated from it, and launches of that
   * (cuGraphRetainUserObject with CU_GRAPH_USER_OBJECT_MOVE).
   *
   * @param graph the handle of the graph
   * @param object the handle of the user object
   * @throws CudaException if the driver reports an error
   */
  void graphRetainUserObject(long graph, long object);

  /**
   * Instantiates a graph; the caller destroys the result (cuGraphInstantiateWithFlags, flags 0).
   *
   * @param device the device, from 0
   * @param graph the handle of the graph
   * @return the handle of the executable graph
   * @throws CudaException if the driver reports an error
   */
  long graphInstantiate(int device, long graph);

  /**
   * Runs an executable in order of a stream (cuGraphLaunch).
   *
   * @param device the device, from 0
   * @param executable the handle of the executable graph
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  void graphLaunch(int device, long executable, long stream);

  /**
   * Destroys an executable; a launch that runs completes (cuGraphExecDestroy).
   *
   * @param executable the handle of the executable graph
   * @throws CudaException if the driver reports an error
   */
  void graphExecDestroy(long executable);

  /**
   * Destroys a graph; what was instantiated from it stays (cuGraphDestroy).
   *
   * @param graph the handle of the graph
   * @throws CudaException if the driver reports an error
   */
  void graphDestroy(long graph);
}
