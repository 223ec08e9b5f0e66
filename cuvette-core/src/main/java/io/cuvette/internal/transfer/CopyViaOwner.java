package io.cuvette.internal.transfer;

import io.cuvette.EventOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.EventFlags;

/**
 * Copies between memory of a driver's pool and memory of the host, or managed memory, for a stream
 * of a device that has no access to the pool. The driver refuses that there (INVALID_VALUE), so the
 * copy runs on a stream of the pool's device, between the work queued on the given stream before
 * and after. Stateless.
 */
public final class CopyViaOwner {
  private static final int NON_BLOCKING = 1;

  private CopyViaOwner() {}

  /**
   * Queues a copy in order of a stream, which knows all of it when this returns.
   *
   * @throws IllegalStateException if the stream is capturing
   */
  public static void queue(Memory target, Memory source, Device owner, OpenStream stream) {
    checkNotCapturing(stream, owner);
    CudaDriver driver = owner.context();
    int device = owner.id();
    // A stream of its own: in a shared one, copies would wait for the streams of each other.
    long between = driver.streams().streamCreateWithPriority(device, NON_BLOCKING, 0);
    try {
      follow(driver, stream.on().id(), stream.state.handle, device, between);
      copyAndJoinBack(owner, target, source, between, stream);
    } finally {
      driver.streams().streamDestroy(device, between); // its work still completes
    }
  }

  /**
   * The buffers know the given stream alone, so a copy that it does not wait for ends here, also
   * one that was queued although the call failed.
   */
  private static void copyAndJoinBack(
      Device owner, Memory target, Memory source, long between, OpenStream stream) {
    CudaDriver driver = owner.session().driver();
    int device = owner.id();
    try {
      driver
          .transfers()
          .memcpyAsync(device, target.address(), source.address(), source.byteSize(), between);
      follow(driver, device, between, stream.on().id(), stream.state.handle);
    } catch (RuntimeException e) {
      Failures.runAfter(e, () -> driver.streams().streamSynchronize(device, between));
      throw e;
    }
  }

  /** Makes one stream wait for the work of another so far. */
  private static void follow(
      CudaDriver driver, int device, long stream, int laterDevice, long later) {
    long event = driver.events().eventCreate(device, EventFlags.of(EventOptions.ORDER_ONLY));
    try {
      driver.events().eventRecord(device, event, stream);
      driver.streams().streamWaitEvent(laterDevice, later, event);
    } finally {
      driver.events().eventDestroy(device, event);
    }
  }

  /** The stream that is used between could not go before the capture ends. */
  private static void checkNotCapturing(OpenStream stream, Device owner) {
    if (stream.isCapturing()) {
      throw new IllegalStateException(
          ("copy: %s is capturing a graph, and its device has no access to the pool of %s"
                  + " (expected: a stream of %s, or access by peerAccessibleBy())")
              .formatted(stream, owner, owner));
    }
  }
}
