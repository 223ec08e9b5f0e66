package io.cuvette.testkit;

import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.driver.CudaStatus.OUT_OF_MEMORY;
import static io.cuvette.driver.CudaStatus.PEER_ACCESS_ALREADY_ENABLED;
import static io.cuvette.driver.CudaStatus.PEER_ACCESS_NOT_ENABLED;
import static io.cuvette.driver.CudaStatus.STREAM_CAPTURE_IMPLICIT;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Fault sweeps of what a program does with a {@link Cuda}: driver call 1, 2, 3 … fails, and nothing
 * may leak, hang, or surface as anything but a typed error. Stateless.
 *
 * <pre>{@code
 * FaultSweeps.onSimulator("devices=2")
 *     .run(FaultSweeps.using(cuda -> {
 *       try (Buffer buffer = cuda.allocate(1000)) {
 *         buffer.fill((byte) 1);
 *       }
 *     }))
 *     .orThrow();
 * }</pre>
 */
public final class FaultSweeps {
  private FaultSweeps() {}

  /** What a program does with a Cuda, which is closed after it. */
  @FunctionalInterface
  public interface CudaUse {
    /**
     * Runs once.
     *
     * @param cuda the Cuda, closed after the program
     * @throws Exception what the program fails with
     */
    void run(Cuda cuda) throws Exception;
  }

  /**
   * Creates a sweep on simulated devices. It allows the program to succeed where the library
   * recovers: an allocation that finds no memory is tried again after some was released, numbers
   * that only explain a failure may be missing, and peer access may be as it is asked for already.
   *
   * @param settings those of a device specification, such as {@code devices=2}
   * @return the sweep
   */
  public static FaultSweep onSimulator(String settings) {
    SimulatedOptions options = SimulatedOptions.parse(settings);
    return FaultSweep.over(() -> SimulatedDriver.open(options))
        .recoveringFrom(OUT_OF_MEMORY, "memAlloc", "memAllocManaged", "memHostAlloc", "callMalloc")
        .recoveringFrom(OUT_OF_MEMORY, "memAllocAsync", "memAllocFromPoolAsync")
        .recoveringFrom(OUT_OF_MEMORY, "memCreate", "memMap", "memSetAccess", "memAddressReserve")
        .recoveringFrom("memGetInfo", "memPoolGetAttribute")
        .recoveringFrom(PEER_ACCESS_ALREADY_ENABLED, "ctxEnablePeerAccess")
        .recoveringFrom(PEER_ACCESS_NOT_ENABLED, "ctxDisablePeerAccess")
        // An event of a capture that is over: the library's own is made anew.
        .recoveringFrom(INVALID_VALUE, "eventQuery")
        // Another stream's capture: an operation is refused or does without the call.
        .recoveringFrom(STREAM_CAPTURE_IMPLICIT, "streamIsCapturing")
        .allowing(STREAM_CAPTURE_IMPLICIT, IllegalStateException.class);
  }

  /**
   * Creates a use case that opens a Cuda on the driver with the faults, and closes it. What the
   * program has closed must be freed before that, whatever failed: memory and handles that only
   * closing the Cuda frees are a finding.
   *
   * @param use the program
   * @return the use case
   */
  public static FaultSweep.UseCase using(CudaUse use) {
    return using(use, false);
  }

  /**
   * Creates a use case for a program that closes all it opens, also when it fails: what is still
   * open before the Cuda is closed is a finding too, and so are default pools whose counts are not
   * back to zero.
   *
   * @param use the program
   * @return the use case
   */
  public static FaultSweep.UseCase usingTidily(CudaUse use) {
    return using(use, true);
  }

  private static FaultSweep.UseCase using(CudaUse use, boolean tidy) {
    Objects.requireNonNull(use, "use");
    return driver -> {
      LiveHandles handles = new LiveHandles(driver);
      CudaOptions options =
          CudaOptions.DEFAULTS
              .withMemoryLimit(MemoryLimit.none())
              .withLeakLevel(LeakLevel.FULL)
              .withDriver(handles);
      try (Cuda cuda = Cuda.open(options)) {
        try {
          use.run(cuda);
        } catch (Exception | Error e) {
          checkNothingLeft(cuda, driver, handles, tidy, e);
          throw e;
        }
        checkNothingLeft(cuda, driver, handles, tidy, null);
      }
    };
  }

  /** Once the fault has come: until then, what is left is for the Cuda's close to meet it with. */
  private static void checkNothingLeft(
      Cuda cuda,
      CudaDriver driver,
      LiveHandles handles,
      boolean tidy,
      @Nullable Throwable failure) {
    if (driver instanceof SweptDriver swept && swept.fired()) {
      try {
        swept.withoutFaults(() -> checkNothingLeft(cuda, handles, tidy));
      } catch (AssertionError e) {
        if (failure != null) {
          e.addSuppressed(failure);
        }
        throw e;
      }
    }
  }

  private static void checkNothingLeft(Cuda cuda, LiveHandles handles, boolean tidy) {
    Leftovers left = Leftovers.of(cuda, handles, cuda.deviceCount());
    if (tidy) {
      left.throwIfAny();
      cuda.defaultMemoryPool().assertConsistent();
      cuda.defaultPinnedMemoryPool().assertConsistent();
    } else {
      left.throwIfLost();
    }
  }
}
