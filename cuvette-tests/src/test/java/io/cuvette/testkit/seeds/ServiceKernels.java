package io.cuvette.testkit.seeds;

import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.POINTER;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import java.util.List;

/** The one kernel of a {@link ServiceProgram}. */
final class ServiceKernels {
  /** Source plus a number: source, target, words, number. */
  private static final SimulatedKernel SERVE =
      SimulatedKernel.of("serveWords", ServiceKernels::serve, POINTER, POINTER, INT, INT);

  static {
    SimulatedKernels.register(SERVE); // for all tests of the process
  }

  private static final LaunchConfig CONFIG = LaunchConfig.of(1, 4);

  private final CudaKernel kernel;

  private ServiceKernels(CudaKernel kernel) {
    this.kernel = kernel;
  }

  static CudaModule load(Cuda cuda) {
    return CudaModule.load(cuda, SimulatedKernels.ptx(List.of(SERVE)));
  }

  static ServiceKernels of(CudaModule module) {
    return new ServiceKernels(module.kernel(SERVE.name()));
  }

  /** Target becomes source plus a number, and may be the source. */
  void add(CudaStream stream, Buffer source, Buffer target, int number) {
    int words = (int) (target.byteSize() / Integer.BYTES);
    stream.launch(kernel, CONFIG, source, target, words, number);
  }

  private static void serve(KernelThread thread) {
    int step = thread.blockDimX() * thread.gridDimX();
    for (long i = thread.globalX(); i < thread.intValue(2); i += step) {
      long at = i * Integer.BYTES;
      thread.setInt(
          thread.pointer(1) + at, thread.getInt(thread.pointer(0) + at) + thread.intValue(3));
    }
  }
}
