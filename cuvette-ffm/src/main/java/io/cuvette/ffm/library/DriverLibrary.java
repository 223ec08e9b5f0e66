package io.cuvette.ffm.library;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.ffm.link.NativeAccess;
import io.cuvette.ffm.link.SharedLibraries;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.Optional;

/**
 * The file of the driver library, and the messages where it is missing. Thread-safe.
 *
 * <p>The system property {@code cuvette.libcuda} names another file than the platform's.
 */
public final class DriverLibrary {
  /** How to do without a GPU; part of every message about a driver that cannot be used. */
  public static final String SIMULATE =
      "to run without a GPU, ask for the simulated device:"
          + " Cuda.open(CudaOptions.simulated()), -Dcuvette.device=sim or CUVETTE_DEVICE=sim";

  private DriverLibrary() {}

  /** What the library is called here. */
  public static String name() {
    return System.getProperty("cuvette.libcuda", platformName());
  }

  private static String platformName() {
    return SharedLibraries.isWindows() ? "nvcuda.dll" : "libcuda.so.1";
  }

  /** Loads the library for as long as the process lives. */
  static SymbolLookup open() {
    String name = name();
    try {
      return NativeAccess.load(name);
    } catch (IllegalArgumentException e) {
      throw missing(name, SharedLibraries.loadError(name));
    }
  }

  private static CudaException missing(String name, String reason) {
    // The loader reports this for files that are missing; others exist and are broken.
    boolean absent = reason.isEmpty() || reason.contains("cannot open shared object file");
    return new CudaException(
        absent ? CudaStatus.FILE_NOT_FOUND : CudaStatus.SHARED_OBJECT_INIT_FAILED,
        "dlopen(" + name + ")",
        (System.getProperty("cuvette.libcuda") == null ? "" : "-Dcuvette.libcuda: ")
            + "%s; install the NVIDIA driver, which brings %s; %s"
                .formatted(
                    reason.isEmpty() ? name + " was not found" : reason, platformName(), SIMULATE));
  }

  /** What is wrong with a library that has no cuGetProcAddress_v2. */
  static CudaException withoutEntry(SymbolLookup symbols) {
    Optional<MemorySegment> version = symbols.find("cuDriverGetVersion");
    if (version.isEmpty()) {
      return new CudaException(
          CudaStatus.SHARED_OBJECT_SYMBOL_NOT_FOUND,
          "dlsym(cuGetProcAddress_v2)",
          name() + " is no CUDA driver: it lacks cuGetProcAddress_v2; " + SIMULATE);
    }
    SharedLibraries.Version found = SharedLibraries.version(version.get());
    return found.status() == CudaStatus.STUB_LIBRARY.code()
        ? stub("cuDriverGetVersion")
        : tooOld(found.number());
  }

  /** A driver that lacks a function in the form that a version introduced. */
  public static CudaException withoutFunction(CudaStatus status, String name, int version) {
    return new CudaException(
        status,
        "cuGetProcAddress(symbol=%s, version=%d)".formatted(name, version),
        "the driver does not have %s as of CUDA %s: install a newer NVIDIA driver"
            .formatted(name, Versions.text(version)));
  }

  /** A driver that lacks what this library needs. */
  public static CudaException tooOld(int found) {
    return new CudaException(
        CudaStatus.SYSTEM_DRIVER_MISMATCH,
        "cuDriverGetVersion()",
        ("the NVIDIA driver supports CUDA %s, needed is CUDA %s:"
                + " install NVIDIA driver 525 or newer; %s")
            .formatted(Versions.text(found), Versions.text(Versions.OLDEST), SIMULATE));
  }

  /** A library that only serves to link programs. */
  public static CudaException stub(String call) {
    return new CudaException(
        CudaStatus.STUB_LIBRARY,
        call + "()",
        "the CUDA toolkit's link-time stub was loaded as %s: take its folder off LD_LIBRARY_PATH"
                .formatted(name())
            + " and install the NVIDIA driver; "
            + SIMULATE);
  }
}
