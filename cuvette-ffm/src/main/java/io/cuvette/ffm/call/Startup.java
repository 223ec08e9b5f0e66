package io.cuvette.ffm.call;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.ffm.library.DriverLibrary;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.library.Versions;
import io.cuvette.ffm.link.NativeAccess;

/** Starts the driver of the process and reports what keeps it from being used. Thread-safe. */
public final class Startup {
  private Startup() {}

  /**
   * Loads and initializes the driver; repeating it does no harm.
   *
   * @throws CudaException if there is no driver, it is too old, or it has no device
   */
  public static void init() {
    Libcuda.load();
    int version = version();
    if (version < Versions.OLDEST) {
      throw DriverLibrary.tooOld(version);
    }
    initDriver();
    if (Contexts.count() == 0) {
      throw noDevice("cuDeviceGetCount()");
    }
  }

  /** The CUDA version of the driver (cuDriverGetVersion). */
  public static int version() {
    CallFrame frame = CallFrame.take();
    int status;
    try {
      status = (int) CallFunctions.DRIVER_VERSION.invokeExact(frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int version = (int) frame.leave();
    if (status == CudaStatus.STUB_LIBRARY.code()) {
      throw DriverLibrary.stub("cuDriverGetVersion");
    }
    if (status != CudaStatus.SUCCESS.code()) {
      throw Call.of("cuDriverGetVersion()").failed(status);
    }
    return version;
  }

  private static void initDriver() {
    int status;
    try {
      status = (int) CallFunctions.INIT.invokeExact(0);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
    switch (CudaStatus.of(status)) {
      case SUCCESS -> {}
      case STUB_LIBRARY -> throw DriverLibrary.stub("cuInit");
      case NO_DEVICE -> throw noDevice("cuInit(flags=0)");
      default ->
          throw new CudaException(
              CudaStatus.of(status),
              "cuInit(flags=0)",
              "CUresult %d: the NVIDIA driver does not start; see what nvidia-smi says; %s"
                  .formatted(status, DriverLibrary.SIMULATE));
    }
  }

  private static CudaException noDevice(String call) {
    return new CudaException(
        CudaStatus.NO_DEVICE,
        call,
        "the NVIDIA driver shows no device; see what nvidia-smi and CUDA_VISIBLE_DEVICES say; "
            + DriverLibrary.SIMULATE);
  }
}
