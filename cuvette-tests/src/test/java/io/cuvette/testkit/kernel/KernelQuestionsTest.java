package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

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
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchShape;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

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

  private static void unknown(CudaModule module, String name, String message) {
    assertThatThrownBy(() -> module.kernel(name))
        .isInstanceOf(CudaException.class)
        .satisfies(e -> assertThat(e.getMessage()).endsWith(message));
  }

  /** The names of C++ begin with the length of the one in the source. */
  @CudaTest(simulatedOnly = true)
  void kernelThatIsUnknown_isLikeThoseThatHaveItsNameInCpp(Cuda cuda, ScriptedDriver script) {
    AtomicInteger next = new AtomicInteger();
    String[] names = {"_Z5scalePfi", "_Z8rescale5Pf", "_Z5scalePdi", "other"};
    script.answer("kernelGetName", _ -> names[next.getAndIncrement() % names.length]);
    script.answer("libraryGetKernelCount", _ -> names.length);
    script.answer("libraryEnumerateKernels", _ -> new long[names.length]);
    script.fail("libraryGetKernel", CudaStatus.NOT_FOUND);
    String all = " (expected: one of [_Z5scalePdi, _Z5scalePfi, _Z8rescale5Pf, other])";
    String hint = " is its name in C++: declare it extern \"C\", or use that name";
    try (CudaModule module = TestKernels.launches(cuda)) {
      unknown(
          module,
          "scale",
          "the module has no kernel scale" + all + "; _Z5scalePdi or _Z5scalePfi" + hint);
      unknown(
          module, "rescale5", "the module has no kernel rescale5" + all + "; _Z8rescale5Pf" + hint);
      unknown(module, "ther", "the module has no kernel ther" + all);
      script.fail("libraryGetKernelCount", CudaStatus.NOT_SUPPORTED);
      unknown(module, "scale", "the module has no kernel scale");
    }
  }

  /** Another thread may be faster: what is allowed of one is allowed of all. */
  @CudaTest(simulatedOnly = true)
  void kernelThatIsFoundTwiceAtOnce_isOne(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      AtomicReference<CudaKernel> faster = new AtomicReference<>();
      script.answer(
          "libraryGetKernel",
          call -> {
            script.unscript("libraryGetKernel");
            faster.set(module.kernel("doNothing"));
            return call.proceed();
          });
      CudaKernel slower = module.kernel("doNothing");
      stream.launch(slower, ONE); // its limits are known from now on
      LaunchConfig large = ONE.withDynamicSharedBytes(50_000);
      faster.get().allowDynamicSharedBytes(stream.device(), 50_000);
      stream.launch(slower, large);
      stream.launch(module.kernel("doNothing"), large);
      stream.synchronize();
    }
  }

  @CudaTest(simulatedOnly = true)
  void moduleThatIsClosed_saysSoInsideACallbackToo(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaModule module = TestKernels.launches(cuda);
    module.close();
    List<Throwable> failures = new CopyOnWriteArrayList<>();
    stream.addCallback(() -> failures.add(catchThrowable(() -> module.kernel("scale")))).join();
    assertThat(failures)
        .singleElement()
        .asInstanceOf(InstanceOfAssertFactories.THROWABLE)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageEndingWith(" is closed");
  }

  @Test
  void closedCuda_isWhatItsModulesName() {
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    CudaModule module = TestKernels.launches(cuda);
    cuda.close();
    assertThatThrownBy(module::kernelNames)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Cuda is closed");
  }

  /** Each number in its place, and no cluster where that is the question. */
  @CudaTest(simulatedOnly = true)
  void questionsAboutOccupancy_areTheDriversOwn(Cuda cuda, ScriptedDriver script) {
    CudaDevice device = cuda.device(0);
    script.note(
        "occupancyMaxActiveBlocksPerMultiprocessor",
        call -> call.number("blockThreads") + " " + call.number("dynamicSharedBytes"));
    script.note(
        "occupancyMaxPotentialBlockSize",
        call -> call.number("dynamicSharedBytes") + " " + call.number("blockLimit"));
    script.note(
        "occupancyAvailableDynamicSMemPerBlock",
        call -> call.number("blocks") + " " + call.number("blockThreads"));
    for (String name : List.of("occupancyMaxActiveClusters", "occupancyMaxPotentialClusterSize")) {
      script.note(
          name,
          call -> {
            LaunchShape shape = call.argument("shape", LaunchShape.class);
            return "%d %d %d".formatted(shape.gridX(), shape.blockX(), shape.clusterX());
          });
    }
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      int _ = kernel.maxActiveBlocks(device, 64, 128);
      assertThat(kernel.maxPotentialBlockSize(device, 16, 96).blockThreads()).isPositive();
      long _ = kernel.availableDynamicSharedBytes(device, 2, 32);
      LaunchConfig config = LaunchConfig.of(3, 32).withCluster(Dim3.of(4));
      int _ = kernel.maxActiveClusters(device, config);
      int _ = kernel.maxPotentialClusterSize(device, config);
    }
    assertThat(script.notes()).containsExactly("64 128", "16 96", "2 32", "12 32 4", "3 32 1");
  }
}
