package io.cuvette.internal.async;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.session.Device;
import java.util.function.LongUnaryOperator;

/**
 * Takes memory from a pool of the driver beside a capture. In the stream that is captured, the
 * driver would make it a node of the graph, whose memory ends with a launch. Stateless.
 */
final class OutsideCapture {
  private static final int NON_BLOCKING = 1;

  private OutsideCapture() {}

  /**
   * The address of memory that every stream can use at once.
   *
   * @param allocation allocates in order of a stream
   */
  static long allocate(Device device, LongUnaryOperator allocation) {
    CudaDriver driver = device.context();
    int id = device.id();
    long stream = driver.streams().streamCreateWithPriority(id, NON_BLOCKING, 0);
    long address;
    try {
      address = allocation.applyAsLong(stream);
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, () -> driver.streams().streamDestroy(id, stream));
      throw e;
    }
    Failures failures = new Failures();
    failures.run(() -> driver.streams().streamSynchronize(id, stream));
    failures.run(() -> driver.streams().streamDestroy(id, stream));
    try {
      failures.throwFirst();
      return address;
    } catch (RuntimeException e) {
      Failures.runAfter(e, () -> driver.memory().memFree(id, address));
      throw e;
    }
  }
}
