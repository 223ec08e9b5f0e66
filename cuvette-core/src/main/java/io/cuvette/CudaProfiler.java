package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.interop.Profiling;
import io.cuvette.internal.session.Device;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Chooses what the tool that profiles this process collects, such as Nsight Systems with {@code
 * --capture-range=cudaProfilerApi} or Nsight Compute with {@code --profile-from-start off}. Without
 * a tool the calls do nothing. {@link CudaDevice#profiler} gives it, the same for the same device;
 * tools take it for the whole process. Thread-safe.
 */
public final class CudaProfiler {
  private final Device device;
  private final Profiling profiling;

  CudaProfiler(Device device) {
    this.device = device;
    this.profiling = new Profiling(device);
  }

  /**
   * Has the tool collect from now on; does nothing if it does already (cuProfilerStart).
   *
   * @throws CudaException if the driver reports an error
   * @throws IllegalStateException if the Cuda is closed
   */
  public void start() {
    device.run(driver -> driver.devices().profilerStart(device.id()));
  }

  /**
   * Has the tool collect no more, also inside a scope (cuProfilerStop).
   *
   * @throws CudaException if the driver reports an error
   * @throws IllegalStateException if the Cuda is closed
   */
  public void stop() {
    device.run(driver -> driver.devices().profilerStop(device.id()));
  }

  /**
   * Has the tool collect until the scope closes. Scopes may be nested and belong to any thread: the
   * first starts and the last to close stops. Those that are open when the Cuda closes end with it.
   *
   * @return the scope, which the caller closes
   * @throws CudaException if the driver reports an error: no scope is open then
   * @throws IllegalStateException if the Cuda is closed
   */
  public Registration profile() {
    profiling.begin();
    AtomicBoolean open = new AtomicBoolean(true);
    return () -> {
      if (open.compareAndSet(true, false)) {
        profiling.end();
      }
    };
  }

  /**
   * Is refused, as CUDA itself refuses it since 12.0 (cuProfilerInitialize): what is collected, and
   * where it is written, is chosen on the command line of Nsight Systems or Nsight Compute.
   *
   * @param config the file that names the counters
   * @param output the file for the profile
   * @param mode how the profile would be written
   * @throws UnsupportedOperationException always
   */
  public void initialize(String config, String output, ProfilerOutput mode) {
    Objects.requireNonNull(config, "config");
    Objects.requireNonNull(output, "output");
    Objects.requireNonNull(mode, "mode");
    throw new UnsupportedOperationException(
        ("cuProfilerInitialize(config=%s, output=%s, mode=%s): CUDA refuses it since 12.0, with"
                + " NOT_SUPPORTED; choose what to collect and where to write it with nsys profile"
                + " or ncu, and when by start() and stop()")
            .formatted(config, output, mode));
  }
}
