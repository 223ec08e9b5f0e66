package io.cuvette.testkit.guide;

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
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedParameter;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** The programs of docs/guide/kernels.md. */
class KernelsGuideTest {
  /** A launch as a call of Java. */
  @FunctionalInterface
  interface Scale {
    void launch(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);
  }

  @CudaTest
  void kernel_isLoadedAndLaunched(Cuda cuda) {
    byte[] ptx = TestKernels.code("launches.ptx");
    float[] numbers = {1, 2, 3, 4, 5};
    try (CudaModule module = CudaModule.load(cuda, ptx); // for all devices
        Buffer data = cuda.allocate(numbers.length * Float.BYTES)) {
      data.copyFrom(MemorySegment.ofArray(numbers));
      CudaKernel scale = module.kernel("scale");
      LaunchConfig config = LaunchConfig.forElements(numbers.length, 256);
      cuda.currentStream().launch(scale, config, data, 2f, numbers.length);
      data.copyTo(MemorySegment.ofArray(numbers)); // waits for the stream
    }
    assertThat(numbers).containsExactly(2, 4, 6, 8, 10);
  }

  @CudaTest
  void arguments_arePackedOnce_orNamed(Cuda cuda) {
    float[] numbers = {1, 2, 3};
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = cuda.allocate(12)) {
      CudaStream stream = cuda.currentStream();
      data.copyFrom(MemorySegment.ofArray(numbers));
      CudaKernel kernel = module.kernel("scale");
      LaunchConfig config = LaunchConfig.of(1, 32);
      KernelArguments packed = kernel.pack(data, 2f, 3);
      for (int i = 0; i < 3; i++) {
        packed.launch(stream, config); // allocates nothing on the Java heap
      }
      Scale scale = kernel.bind(Scale.class);
      scale.launch(stream, config, data, 0.5f, 3);
      data.copyTo(MemorySegment.ofArray(numbers));
    }
    assertThat(numbers).containsExactly(4, 8, 12);
  }

  @CudaTest
  void occupancy_saysHowManyFit(Cuda cuda) {
    CudaDevice device = cuda.currentDevice();
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel sum = module.kernel("sumAll");
      LaunchConfig config = LaunchConfig.of(1, 256).withCooperative(true);
      long most = sum.maxResidentBlocks(device, config);
      config = config.withGrid(Dim3.of(Math.min(most, 64)));
      assertThat(config.blocks().count()).isPositive();
    }
  }

  @CudaTest(simulatedOnly = true)
  void twin_runsOnTheSimulatedDevice(Cuda cuda) {
    SimulatedKernel fill =
        SimulatedKernel.of(
            "fillWithIndex",
            thread -> {
              long place = thread.pointer(0) + thread.globalX() * Integer.BYTES;
              if (thread.globalX() < thread.intValue(1)) {
                thread.setInt(place, (int) thread.globalX());
              }
            },
            SimulatedParameter.POINTER,
            SimulatedParameter.INT);
    int[] numbers = new int[100];
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(fill);
        CudaModule module = CudaModule.load(cuda, SimulatedKernels.ptx(List.of(fill)));
        Buffer data = cuda.allocate(400)) {
      cuda.currentStream()
          .launch(module.kernel("fillWithIndex"), LaunchConfig.of(4, 32), data, 100);
      data.copyTo(MemorySegment.ofArray(numbers));
    }
    assertThat(numbers[99]).isEqualTo(99);
  }
}
