package io.cuvette;

import io.cuvette.internal.order.OpenEvent;
import java.util.Objects;

/**
 * A marker in the work of a stream, which can be queried and waited for, and with timing measures
 * the time between two. Thread-safe.
 */
public final class CudaEvent implements AutoCloseable {
  private final CudaDevice device;
  private final OpenEvent core;

  private CudaEvent(CudaDevice device, OpenEvent core) {
    this.device = device;
    this.core = core;
  }

  static CudaEvent create(CudaDevice device, EventOptions options) {
    return new CudaEvent(device, OpenEvent.create(device.core(), options));
  }

  static CudaEvent imported(CudaDevice device, EventDescriptor descriptor) {
    return new CudaEvent(device, OpenEvent.imported(device.core(), descriptor));
  }

  /** The event as the engine knows it. */
  OpenEvent core() {
    return core;
  }

  /**
   * {@return the milliseconds from one event to another, with about half a microsecond of
   * resolution (cuEventElapsedTime)} On a simulated device the time is simulated.
   *
   * @param start the earlier event
   * @param end the later event
   * @throws IllegalStateException naming the event that has no timing or was not recorded
   * @throws io.cuvette.driver.CudaException if the driver reports an error: NOT_READY, naming the
   *     event that is not done
   */
  public static double elapsedMillis(CudaEvent start, CudaEvent end) {
    Objects.requireNonNull(start, "start");
    Objects.requireNonNull(end, "end");
    return OpenEvent.elapsedMillis(start.core, end.core);
  }

  /** {@return the handle of the driver (CUevent)} */
  public long handle() {
    return core.handle();
  }

  /** {@return the device whose streams can record it} */
  public CudaDevice device() {
    return device;
  }

  /** {@return the options that it was created with} */
  public EventOptions options() {
    return core.options();
  }

  /**
   * {@return the descriptor by which another process imports the event, equal each time
   * (cuIpcGetEventHandle)} That of an imported event passes it on. Keep the event open as long as
   * others use it.
   *
   * @throws IllegalStateException if the event is closed or was not made with {@link
   *     EventOptions#interprocess()}
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public EventDescriptor descriptor() {
    return core.descriptor();
  }

  /**
   * {@return whether it was ever recorded; true for an imported event, of which this is not known}
   */
  public boolean isRecorded() {
    return core.isRecorded();
  }

  /** Records on this thread's current stream of the event's device. */
  public void record() {
    record(device.cuda().currentStream(device));
  }

  /**
   * Records in order of a stream of the same device, and forgets the record before (cuEventRecord).
   *
   * @param stream the stream
   * @throws IllegalArgumentException if the stream is another device's
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public void record(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    core.record(stream.core());
  }

  /**
   * {@return whether the work before the last record has completed; true if it was never recorded
   * (cuEventQuery)}
   *
   * @throws io.cuvette.driver.CudaException if the driver reports an error, also of the work itself
   * @throws IllegalStateException if it was recorded in a stream that is still capturing
   */
  public boolean isDone() {
    return core.isDone();
  }

  /**
   * Waits for the work before the last record; returns at once if there was none
   * (cuEventSynchronize).
   *
   * @throws IllegalStateException if it was recorded in a stream that is capturing still
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public void synchronize() {
    core.synchronize();
  }

  /** {@return whether the event is closed} */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Ends the event; streams that wait for it go on waiting (cuEventDestroy). Does nothing the
   * second time.
   *
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  @Override
  public void close() {
    core.close();
  }

  @Override
  public String toString() {
    return core.toString();
  }
}
