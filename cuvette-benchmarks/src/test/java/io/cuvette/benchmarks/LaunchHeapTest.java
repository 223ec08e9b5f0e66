package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingKernels;
import io.cuvette.sim.SimulatedKernels;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** The Java heap that a launch needs on its way to the driver, which does nothing here. */
class LaunchHeapTest {
  private static final int WARM_UP = 20_000;
  private static final int LAUNCHES = 10_000;
  private static final LaunchConfig CONFIG = LaunchConfig.of(1, 32);

  /** The arguments in an array, and two numbers in objects: what Java makes of the call. */
  private static final long CALL_OF_JAVA = 64;

  private static final ThreadMXBean HEAP = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** A driver whose launches do nothing. */
  private static final class Idle extends ForwardingDriver {
    private final KernelCalls kernels;

    Idle(CudaDriver target) {
      super(target);
      kernels =
          new ForwardingKernels(target.kernels()) {
            @Override
            public void launchKernel(
                int device,
                long stream,
                long kernel,
                LaunchShape shape,
                LaunchParameters parameters) {}
          };
    }

    @Override
    public String name() {
      return "idle";
    }

    @Override
    public KernelCalls kernels() {
      return kernels;
    }
  }

  private static long bytesOf(Runnable launch) {
    for (int i = 0; i < WARM_UP; i++) {
      launch.run();
    }
    long before = HEAP.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < LAUNCHES; i++) {
      launch.run();
    }
    return (HEAP.getCurrentThreadAllocatedBytes() - before) / LAUNCHES;
  }

  @Test
  void packedLaunches_needNone_andOthersNoMoreThanTheCall() {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(NothingOfFour.TWIN);
        Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Idle::new));
        CudaStream stream = cuda.currentDevice().createStream();
        CudaModule module = CudaModule.load(cuda, NothingOfFour.ptx());
        Buffer data = cuda.allocate(1_024, stream);
        Buffer slice = data.slice(512, 512)) {
      CudaKernel kernel = module.kernel(NothingOfFour.TWIN.name());
      KernelArguments packed = kernel.pack(data, slice, 0.5f, 1_000);
      assertThat(bytesOf(() -> packed.launch(stream, CONFIG))).as("packed").isZero();
      assertThat(bytesOf(() -> stream.launch(kernel, CONFIG, data, slice, 0.5f, 1_000)))
          .as("single")
          .isLessThanOrEqualTo(CALL_OF_JAVA);
    }
  }
}
