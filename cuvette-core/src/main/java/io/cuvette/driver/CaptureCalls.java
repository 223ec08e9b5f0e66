package io.cuvette.driver;

/**
 * Driver calls about the capture of streams into graphs, as far as memory has to know about it.
 * Thread-safe.
 *
 * <p>No other call of the driver invalidates somebody's capture for being made beside it: calls
 * that CUDA counts as potentially unsafe run with the capture mode of the OS thread relaxed, and
 * the mode is what it was when they return (cuThreadExchangeStreamCaptureMode). What contradicts a
 * capture still does: to wait for a stream that is capturing or to query it, to use the legacy
 * default stream while a blocking stream is capturing, and {@link DeviceCalls#ctxSynchronize},
 * which invalidates the captures of the whole device.
 */
public interface CaptureCalls {

  /**
   * Starts to capture a stream; mode 0 global, 1 thread-local, 2 relaxed (cuStreamBeginCapture).
   */
  void streamBeginCapture(int device, long stream, int mode);

  /** Ends the capture and gives the graph, which the caller destroys (cuStreamEndCapture). */
  long streamEndCapture(int device, long stream);

  /** CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated (cuStreamIsCapturing). */
  int streamIsCapturing(int device, long stream);

  /** The capture that a stream takes part in (cuStreamGetCaptureInfo). */
  CaptureInfo streamGetCaptureInfo(int device, long stream);

  /**
   * Makes an object with one reference, which tells when its last reference is gone
   * (cuUserObjectCreate). No Java code runs on a thread of the driver for that.
   */
  UserObject userObjectCreate();

  /** Drops the reference that {@link #userObjectCreate} gave (cuUserObjectRelease). */
  void userObjectRelease(long object);

  /**
   * Hands the reference that {@link #userObjectCreate} gave on to a graph, which may still be
   * captured. It is dropped with the last of the graph, what is instantiated from it, and launches
   * of that (cuGraphRetainUserObject with CU_GRAPH_USER_OBJECT_MOVE).
   */
  void graphRetainUserObject(long graph, long object);

  /**
   * Makes an executable of a graph; the caller destroys it (cuGraphInstantiateWithFlags, flags 0).
   */
  long graphInstantiate(int device, long graph);

  /** Runs an executable in order of a stream (cuGraphLaunch). */
  void graphLaunch(int device, long executable, long stream);

  /** Destroys an executable; a launch that runs completes (cuGraphExecDestroy). */
  void graphExecDestroy(long executable);

  /** Destroys a graph; what was instantiated from it stays (cuGraphDestroy). */
  void graphDestroy(long graph);
}
