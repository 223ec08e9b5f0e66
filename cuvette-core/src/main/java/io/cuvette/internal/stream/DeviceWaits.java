package io.cuvette.internal.stream;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;

/** Waits for all work of a device, and leaves captures alone. Thread-safe. */
public final class DeviceWaits {
  private final Streams streams;

  public DeviceWaits(Streams streams) {
    this.streams = streams;
  }

  /** Waits for all work that a device has now; see {@code CudaDevice.synchronize()}. */
  public void synchronize(Device device) {
    Session session = device.session();
    Callbacks callbacks = streams.callbacks();
    session.checkOpen();
    Callback callback = callbacks.inside();
    if (callback != null) {
      throw callback.itself("synchronize() of " + device);
    }
    streams.listener().beforeWait(stream -> stream.device == device);
    long wait = device.beginWait();
    if (device.ask(
        driver ->
            awaitAll(device)
                || callbacks.free(() -> driver.devices().ctxSynchronize(device.id())))) {
      device.endWait(wait);
    }
    callbacks.awaitPutOff();
    streams.listener().afterDevice();
    streams.ended().pollAll();
    streams.relief().settleClosed();
  }

  /** Waits for the streams that are known, then for all others; false if it could not for these. */
  public boolean awaitAll(Device device) {
    streams.await(device);
    return awaitWork(device);
  }

  /**
   * Waits for the work of all streams, whoever made them: freeing plain memory does (cuMemFree),
   * and lets captures go on. False if there is no memory to free, or no gap between callbacks.
   */
  public boolean awaitWork(Device device) {
    boolean[] waited = new boolean[1];
    return streams.callbacks().free(() -> waited[0] = allocateAndFree(device)) && waited[0];
  }

  private static boolean allocateAndFree(Device device) {
    CudaDriver driver = device.session().driver();
    int id = device.id();
    long address;
    try {
      address = driver.memory().memAlloc(id, 1);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      return false;
    }
    Once freed = new Once();
    Runnable free = () -> freed.free(() -> driver.memory().memFree(id, address));
    try {
      free.run();
    } catch (RuntimeException e) {
      Failures.closeAfter(e, free::run);
      throw e;
    }
    return true;
  }
}
