package io.cuvette;

import io.cuvette.internal.stream.OpenEvent;
import java.util.Objects;

/**
 * A mark in a stream that can be asked, waited for and, with timing, measured from. Thread-safe.
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
    return new CudaEvent(device, OpenEvent.imported(device.core(), descriptor.core()));
  }

  /** The event as the engine knows it. */
  OpenEvent core() {
    return core;
  }

  /**
   * Milliseconds from one event to another, with about half a microsecond of resolution
   * (cuEventElapsedTime). On a simulated device the time is simulated.
   *
   * @throws IllegalStateException naming the event that has no timing or was not recorded
   * @throws io.cuvette.driver.CudaException NOT_READY, naming the event that is not done
   */
  public static double elapsedMillis(CudaEvent start, CudaEvent end) {
    Objects.requireNonNull(start, "start");
    Objects.requireNonNull(end, "end");
    return OpenEvent.elapsedMillis(start.core, end.core);
  }

  /** The handle of the driver (CUevent). */
  public long handle() {
    return core.handle();
  }

  /** The device whose streams can record it. */
  public CudaDevice device() {
    return device;
  }

  /** How it was made. */
  public EventOptions options() {
    return core.options();
  }

  /**
   * What another process imports the event by; the same each time (cuIpcGetEventHandle). That of an
   * imported event passes it on. Keep the event open as long as others use it.
   *
   * @throws IllegalStateException if the event is closed or was not made with {@link
   *     EventOptions#interprocess()}
   */
  public EventDescriptor descriptor() {
    return new EventDescriptor(core.descriptor());
  }

  /**
   * Whether it was ever recorded; an imported event always counts as recorded, for nobody can tell.
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
   * @throws IllegalArgumentException if the stream is another device's
   */
  public void record(CudaStream stream) {
    Objects.requireNonNull(stream, "stream");
    core.record(stream.core());
  }

  /**
   * Whether the work before the last record is done; true if it was never recorded (cuEventQuery).
   *
   * @throws io.cuvette.driver.CudaException if the work failed: an error is not "not yet"
   * @throws IllegalStateException if it was recorded in a stream that is capturing still
   */
  public boolean isDone() {
    return core.isDone();
  }

  /**
   * Waits for the work before the last record; returns at once if there was none
   * (cuEventSynchronize).
   *
   * @throws IllegalStateException if it was recorded in a stream that is capturing still
   */
  public void synchronize() {
    core.synchronize();
  }

  /** Whether the event was closed. */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Ends the event; streams that wait for it go on waiting (cuEventDestroy). Does nothing the
   * second time.
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
