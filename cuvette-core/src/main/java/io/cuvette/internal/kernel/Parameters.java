package io.cuvette.internal.kernel;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Asks the driver for the parameters of a kernel. Stateless. */
final class Parameters {
  private Parameters() {}

  /** Where each parameter lies, in order; null if the driver is older than CUDA 12.4. */
  static @Nullable List<KernelParameter> of(KernelCalls driver, long kernel) {
    List<KernelParameter> places = new ArrayList<>();
    while (true) {
      try {
        places.add(driver.kernelGetParamInfo(kernel, places.size()));
      } catch (CudaException e) {
        if (e.status() == CudaStatus.INVALID_VALUE) { // behind the last
          return List.copyOf(places);
        }
        if (isMissing(e)) {
          return null;
        }
        throw e;
      }
    }
  }

  private static boolean isMissing(CudaException e) {
    return e.call().startsWith("cuGetProcAddress(");
  }
}
