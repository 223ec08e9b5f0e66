package io.cuvette.ffm;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.call.Startup;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.part.FfmCaptures;
import io.cuvette.ffm.part.FfmDevices;
import io.cuvette.ffm.part.FfmEvents;
import io.cuvette.ffm.part.FfmIpc;
import io.cuvette.ffm.part.FfmMemory;
import io.cuvette.ffm.part.FfmNative;
import io.cuvette.ffm.part.FfmPools;
import io.cuvette.ffm.part.FfmStreams;
import io.cuvette.ffm.part.HostFunctions;

/**
 * The NVIDIA driver. The calls are in one interface for each part of the seam, which saves a
 * hundred methods that only pass on. Thread-safe.
 *
 * <p>After {@link #close} every call fails. Once the JVM is shutting down, calls that give
 * something back do nothing and the others fail: nothing goes to the driver any more.
 *
 * <p>With this class its parts are initialized and bind every function. Later, a virtual thread
 * that waits for the initialization of a class between two calls could go on under another thread's
 * context. So {@link Startup#init} comes first.
 */
final class FfmDriver
    implements CudaDriver,
        FfmDevices,
        FfmMemory,
        FfmPools,
        FfmStreams,
        FfmEvents,
        FfmCaptures,
        FfmIpc,
        FfmNative {
  private final Entry entry = new Entry();

  private FfmDriver() {}

  /**
   * Opens the driver of the process, which was initialized.
   *
   * @throws CudaException if it is incomplete
   */
  static FfmDriver open() {
    Libcuda.loaded().requireComplete();
    FfmDriver driver = new FfmDriver();
    Shutdown.watch(driver.entry);
    return driver;
  }

  @Override
  public String name() {
    return "ffm";
  }

  @Override
  public boolean isSimulated() {
    return false;
  }

  @Override
  public Entry entry() {
    return entry;
  }

  @Override
  public void close() {
    if (entry.close()) {
      Shutdown.forget(entry);
      HostFunctions.forget(entry);
      entry.contexts().releaseAll();
    }
  }
}
