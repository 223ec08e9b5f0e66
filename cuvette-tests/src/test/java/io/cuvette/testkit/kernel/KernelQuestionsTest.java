package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.Dim3;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphNode;
import io.cuvette.KernelArguments;
import io.cuvette.KernelAttribute;
import io.cuvette.LaunchConfig;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What the driver is asked about kernels, and what follows of its answers. */
class KernelQuestionsTest {
  private static final LaunchConfig ONE = LaunchConfig.of(1, 1);

  private static void refused(ThrowingCallable call, String... parts) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(parts);
  }

  /** Code says that, and no attribute that is set. */
  @CudaTest(simulatedOnly = true)
  void kernelThatMustHaveACluster_isNotLaunchedWithout(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      int code = KernelAttribute.CLUSTER_SIZE_MUST_BE_SET.code();
      script.answer(
          "kernelGetAttribute",
          call -> call.argument("attribute", Integer.class) == code ? 1 : call.proceed());
      refused(
          () -> stream.launch(kernel, ONE),
          "a cluster of blocks, without which kernel doNothing cannot be launched");
      refused(() -> kernel.pack().launch(stream, ONE), "without which kernel doNothing");
      try (GraphDefinition definition = new GraphDefinition(stream.device())) {
        refused(() -> definition.root().launch(kernel, ONE), "without which kernel doNothing");
        GraphNode _ = definition.root().launch(kernel, ONE.withCluster(Dim3.of(2)));
      }
      stream.launch(kernel, ONE.withCluster(Dim3.of(2)));
      stream.synchronize();
    }
  }

  /** A device without clusters cannot be asked about them. */
  @CudaTest(simulatedOnly = true)
  void blocksThatRunAtOnce_areAskedForInClusters_whereThereAreSome(
      Cuda cuda, ScriptedDriver script) {
    CudaDevice device = cuda.device(0);
    script.answer("occupancyMaxActiveClusters", _ -> 7);
    script.answer("occupancyMaxActiveBlocksPerMultiprocessor", _ -> 3);
    int processors = device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      assertThat(kernel.maxResidentBlocks(device, ONE)).isEqualTo(3L * processors);
      assertThat(script.count("occupancyMaxActiveClusters")).isZero();
      LaunchConfig clusters = ONE.withCluster(Dim3.of(2, 1, 2));
      assertThat(kernel.maxResidentBlocks(device, clusters)).isEqualTo(4 * 7);
    }
  }

  /** A driver need not have an answer for none. */
  @CudaTest(simulatedOnly = true)
  void moduleWithoutKernels_hasNoNames_andTheDriverIsNotAskedForAny(
      Cuda cuda, ScriptedDriver script) {
    script.answer("libraryGetKernelCount", _ -> 0);
    try (CudaModule module = TestKernels.launches(cuda)) {
      assertThat(module.kernelNames()).isEmpty();
      assertThat(script.count("libraryEnumerateKernels")).isZero();
      script.unscript("libraryGetKernelCount");
      assertThat(module.kernelNames()).contains("doNothing").isSorted();
    }
  }

  @CudaTest(simulatedOnly = true)
  void kernelOfAnotherCuda_isNoNodeOfAGraph(Cuda cuda, ScriptedDriver script) {
    try (Cuda other = Cuda.open(CudaOptions.simulated());
        CudaModule module = TestKernels.launches(cuda);
        CudaModule theirs = TestKernels.launches(other);
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      CudaKernel foreign = theirs.kernel("doNothing");
      GraphNode node = definition.root().launch(module.kernel("doNothing"), ONE);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        for (ThrowingCallable launch :
            List.<ThrowingCallable>of(
                () -> definition.root().launch(foreign, ONE),
                () -> definition.after(node).launch(foreign, ONE),
                () -> node.update().launch(foreign, ONE),
                () -> node.updateIn(executable).launch(foreign, ONE),
                () -> foreign.attribute(KernelAttribute.NUM_REGS, cuda.device(0)))) {
          refused(launch, "belongs to another Cuda");
        }
      }
      assertThat(definition.nodes()).containsExactly(node);
      assertThat(script.count("graphNodeSetParams")).isZero();
    }
  }

  @CudaTest(simulatedOnly = true)
  void kernel_isAskedOnceForWhatLimitsItsLaunches_andAgainOnceItChanged(
      Cuda cuda, ScriptedDriver script, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      stream.launch(kernel, ONE);
      long asked = script.count("kernelGetAttribute");
      for (int threads = 1; threads < 5; threads++) {
        stream.launch(kernel, LaunchConfig.of(2, threads));
      }
      assertThat(kernel.maxResidentBlocks(cuda.device(0), ONE)).isPositive();
      kernel.pack().launch(stream, LaunchConfig.of(3, 1));
      assertThat(script.count("kernelGetAttribute")).isEqualTo(asked);
      kernel.setAttribute(KernelAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, 64, cuda.device(0));
      stream.launch(kernel, LaunchConfig.of(4, 1));
      assertThat(script.count("kernelGetAttribute")).isGreaterThan(asked);
      stream.synchronize();
    }
  }

  /** Whether all blocks of a cooperative launch can run at once, the driver alone can tell. */
  @CudaTest(simulatedOnly = true)
  void launchThatIsLikeTheOneBeforeIt_asksTheDriverNothing(
      Cuda cuda, ScriptedDriver script, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      LaunchConfig together = ONE.withCooperative(true);
      KernelArguments packed = kernel.pack();
      for (Runnable launch :
          List.<Runnable>of(
              () -> stream.launch(kernel, together), () -> packed.launch(stream, together))) {
        launch.run();
        long asked = script.count("occupancyMaxActiveBlocksPerMultiprocessor");
        assertThat(asked).isPositive();
        launch.run();
        launch.run();
        assertThat(script.count("occupancyMaxActiveBlocksPerMultiprocessor")).isEqualTo(asked);
      }
      stream.synchronize();
    }
  }
}
