package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.Dim3;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.SweepReport;
import io.cuvette.testkit.support.TestKernels;
import org.junit.jupiter.api.Test;

/** Whatever call fails around launches, nothing is left loaded, and errors are typed. */
class LaunchSweepTest {
  private static final int COUNT = 64;

  @Test
  void modulesAndLaunches() throws Exception {
    // INVALID_VALUE is said behind the last parameter, and of attributes that a driver does not
    // know
    FaultSweep sweep =
        FaultSweeps.onSimulator("seed=1")
            .recoveringFrom(CudaStatus.INVALID_VALUE, "kernelGetParamInfo", "deviceGetAttribute")
            .allowing(CudaStatus.INVALID_VALUE, IllegalArgumentException.class);
    SweepReport report = sweep.run(FaultSweeps.usingTidily(LaunchSweepTest::use)).orThrow();
    assertThat(report.faults()).isGreaterThan(100);
  }

  private static void use(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    LaunchConfig config = LaunchConfig.of(2, COUNT);
    try (CudaStream stream = device.createStream();
        CudaModule module = TestKernels.launches(cuda);
        Buffer data = cuda.allocate(COUNT * 4L, stream)) {
      CudaKernel scale = module.kernel("scale");
      data.fill(0, stream);
      stream.launch(scale, config, data, 2f, COUNT);
      KernelArguments packed = scale.pack(data, 2f, COUNT);
      packed.launch(stream, config);
      module.kernelNames();
      scale.allowDynamicSharedBytes(device, 1024);
      scale.maxActiveBlocks(device, COUNT, 0);
      scale.maxPotentialBlockSize(device, 0, 0);
      scale.availableDynamicSharedBytes(device, 1, COUNT);
      scale.maxActiveClusters(device, config.withCluster(Dim3.of(2)));
      scale.maxPotentialClusterSize(device, config);
      packed.launch(stream, config.withCooperative(true));
      stream.synchronize();
    }
  }
}
