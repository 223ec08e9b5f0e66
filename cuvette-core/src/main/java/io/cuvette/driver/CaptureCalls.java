package io.cuvette.driver;

/** Driver calls about the capture of streams into graphs. Thread-safe. */
public interface CaptureCalls {

  /**
   * Starts to capture a stream; mode 0 global, 1 thread-local, 2 relaxed (cuStreamBeginCapture).
   */
  void streamBeginCapture(int device, long stream, int mode);

  /** Ends the capture and gives the graph, which the caller destroys (cuStreamEndCapture). */
  long streamEndCapture(int device, long stream);

  /** CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated (cuStreamIsCapturing). */
  int streamIsCapturing(int device, long stream);

  /** Destroys a graph (cuGraphDestroy). */
  void graphDestroy(long graph);
}
