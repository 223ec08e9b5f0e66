package io.cuvette.sim;

import io.cuvette.Cuda;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.internal.schedule.SimScheduler;
import io.cuvette.sim.internal.schedule.UnattendedWork;
import java.lang.reflect.Field;

/**
 * Simulated devices whose work runs by calls of the driver alone. Else it also does once nobody has
 * called it for a tenth of a second, as where a test's thread had no processor for so long.
 */
public final class Attended {
  private Attended() {}

  /** Gives the driver, which has no work yet. */
  public static SimulatedDriver only(SimulatedDriver driver) {
    return driver.machine.peek(() -> {
      unattended(driver.machine.scheduler).close();
      return driver;
    });
  }

  /** The same for one that is not known to be simulated, but is. */
  public static CudaDriver only(CudaDriver driver) {
    return only((SimulatedDriver) driver);
  }

  /** Gives the Cuda, whose driver is a simulated one and has no work yet. */
  public static Cuda only(Cuda cuda) {
    CudaDriver _ = only(cuda.driver());
    return cuda;
  }

  private static UnattendedWork unattended(SimScheduler scheduler) {
    try {
      Field field = SimScheduler.class.getDeclaredField("unattended");
      field.setAccessible(true);
      return (UnattendedWork) field.get(scheduler);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }
}
