package io.cuvette.driver;

/**
 * Driver calls about the capture of streams into graphs. Thread-safe.
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
   * Starts to capture a stream into a graph that is there already, such as the body of a
   * conditional node (cuStreamBeginCaptureToGraph).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @param graph the handle of the graph, which {@link #streamEndCapture} returns
   * @param dependencies the nodes of the graph that the first work waits for
   * @param mode CUstreamCaptureMode: 0 global, 1 thread-local, 2 relaxed
   * @throws CudaException if the driver reports an error
   */
  void streamBeginCaptureToGraph(
      int device, long stream, long graph, long[] dependencies, int mode);

  /**
   * {@return the nodes that the next work of a stream that is captured waits for
   * (cuStreamGetCaptureInfo); none if it is not}
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @throws CudaException if the driver reports an error
   */
  long[] streamGetCaptureDependencies(int device, long stream);

  /**
   * Replaces the nodes that the next work of a stream that is captured waits for
   * (cuStreamUpdateCaptureDependencies with CU_STREAM_SET_CAPTURE_DEPENDENCIES).
   *
   * @param device the device, from 0
   * @param stream the stream, or 0, 1 or 2 for a default one
   * @param dependencies nodes of the graph that is captured
   * @throws CudaException if the driver reports an error
   */
  void streamUpdateCaptureDependencies(int device, long stream, long[] dependencies);
}
