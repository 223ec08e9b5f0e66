package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingPools;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** A pool of the driver between its making and that of what is to own it. */
class PoolWithoutOwnerTest {
  private final AtomicInteger errors = new AtomicInteger();

  private CudaDriver failing(CudaDriver driver) {
    PoolCalls pools =
        new ForwardingPools(driver.pools()) {
          @Override
          public void memPoolDestroy(long pool) {
            if (errors.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
              throw new OutOfMemoryError("the test's");
            }
            super.memPoolDestroy(pool);
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public PoolCalls pools() {
        return pools;
      }
    };
  }

  private static DriverPool make(Cuda cuda) {
    return MadePool.createKeeping(
        cuda.engine().driverPools(),
        new PoolProperties(
            MemAllocationType.PINNED, MemHandleType.NONE, MemLocationType.DEVICE, 0, 0));
  }

  /** As where another thread closes the Cuda just then. */
  @Test
  void poolWhoseCudaCloses_beforeAnythingOwnsIt_isDestroyed() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver))) {
      assertThat(make(cuda).isOwned()).isTrue();
      assertThat(driver.livePools()).isOne();
    }
    assertThat(driver.livePools()).isZero();
  }

  @Test
  void poolThatCouldNotBeLetGo_isByTheNextClose() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(failing(driver)))) {
      DriverPool pool = make(cuda);
      errors.set(1);
      assertThatThrownBy(pool::close).isInstanceOf(OutOfMemoryError.class);
      assertThat(driver.livePools()).isOne();
      pool.close();
      assertThat(driver.livePools()).isZero();
    }
  }
}
