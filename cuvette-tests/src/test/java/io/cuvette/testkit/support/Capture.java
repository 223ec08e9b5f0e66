package io.cuvette.testkit.support;

import io.cuvette.CudaStream;
import io.cuvette.driver.CudaDriver;

/** Captures a stream through the driver, in relaxed mode, and drops the graph. Stateless. */
public final class Capture {
  private static final int RELAXED = 2;

  private Capture() {}

  /** Runs the body while the stream is capturing. */
  public static void of(CudaStream stream, Runnable body) {
    CudaDriver driver = stream.device().cuda().driver();
    int device = stream.device().id();
    driver.captures().streamBeginCapture(device, stream.handle(), RELAXED);
    try {
      body.run();
    } finally {
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(device, stream.handle()));
    }
  }
}
