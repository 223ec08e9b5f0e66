package io.cuvette.testkit;

import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaDriver;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Holds the work of a stream back until it is opened, so that a test can say what happens while
 * work is queued. On a GPU nothing that waits for the device may be called before it is opened:
 * freeing memory of the driver, for one. It opens by itself after half a minute. Thread-safe.
 */
public final class Gate implements AutoCloseable {
  /** So that a test that fails before it opens the gate does not hold all others up. */
  private static final long PATIENCE_SECONDS = 30;

  private final CountDownLatch latch = new CountDownLatch(1);

  private Gate() {}

  /**
   * Holds what is queued on a stream from now on.
   *
   * @param stream the stream
   * @return the gate, which is closed to let the work run
   */
  public static Gate on(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    CudaDevice device = stream.device();
    return on(device.cuda().driver(), device.id(), stream.handle());
  }

  /** The same for a stream of the driver. */
  static Gate on(CudaDriver driver, int device, long stream) {
    Gate gate = new Gate();
    driver.streams().launchHostFunc(device, stream, gate::await);
    return gate;
  }

  private void await() {
    try {
      boolean _ = latch.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Lets the stream go on. */
  public void open() {
    latch.countDown();
  }

  /** The same as {@link #open}. */
  @Override
  public void close() {
    open();
  }
}
