package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** What is said of a kernel that a module does not have, and who has one that it has. */
class KernelNamesTest {
  private static final LaunchConfig SMALL = LaunchConfig.of(1, 32);
  private static final int SHARED_BYTES = 60_000;

  private static void answerNames(ScriptedDriver script, List<String> names) {
    long[] handles = new long[names.size()];
    for (int i = 0; i < handles.length; i++) {
      handles[i] = i;
    }
    script.answer("libraryGetKernelCount", _ -> handles.length);
    script.answer("libraryEnumerateKernels", _ -> handles);
    script.answer("kernelGetName", call -> names.get((int) call.number("kernel")));
  }

  private static void unscript(ScriptedDriver script) {
    for (String call :
        List.of("libraryGetKernelCount", "libraryEnumerateKernels", "kernelGetName")) {
      script.unscript(call);
    }
  }

  @CudaTest(simulatedOnly = true)
  void nameInCpp_isSaid_ofEachKernelThatHasTheNameInItsOwn(Cuda cuda, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      String expected = "the module has no kernel blur (expected: one of %s)";
      answerNames(script, List.of("_Z5blur2v", "blurred", "blu"));
      assertThatThrownBy(() -> module.kernel("blur"))
          .isInstanceOf(CudaException.class)
          .hasMessageEndingWith(expected.formatted("[_Z5blur2v, blu, blurred]"));
      answerNames(script, List.of("other", "_Z4blurPfi"));
      assertThatThrownBy(() -> module.kernel("blur"))
          .hasMessageEndingWith(
              expected.formatted("[_Z4blurPfi, other]")
                  + "; _Z4blurPfi is its name in C++: declare it extern \"C\", or use that name");
      answerNames(script, List.of("_ZN3app4blurEv", "_Z4blurPf"));
      assertThatThrownBy(() -> module.kernel("blur"))
          .hasMessageEndingWith(
              expected.formatted("[_Z4blurPf, _ZN3app4blurEv]")
                  + "; _Z4blurPf or _ZN3app4blurEv is its name in C++: declare it extern \"C\","
                  + " or use that name");
      answerNames(script, List.of());
      assertThatThrownBy(() -> module.kernel("blur"))
          .hasMessageEndingWith(expected.formatted("[]"));
      unscript(script);
      script.fail("libraryGetKernelCount", CudaStatus.CALL_REQUIRES_NEWER_DRIVER, 1);
      assertThatThrownBy(() -> module.kernel("blur"))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("CUDA_ERROR_NOT_FOUND")
          .hasMessageEndingWith("the module has no kernel blur");
    }
  }

  /** Else what is allowed to one would not be to the other. */
  @CudaTest(simulatedOnly = true)
  void kernelThatSomebodyElseGotMeanwhile_isOneForBoth(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    CudaDevice device = cuda.device(0);
    List<CudaKernel> inside = new ArrayList<>();
    try (CudaModule module = TestKernels.launches(cuda)) {
      script.answer(
          "libraryGetKernel",
          call -> {
            script.unscript("libraryGetKernel");
            inside.add(module.kernel("doNothing"));
            return call.proceed();
          });
      CudaKernel outside = module.kernel("doNothing");
      CudaKernel first = inside.getFirst();
      stream.launch(first, SMALL);
      outside.allowDynamicSharedBytes(device, SHARED_BYTES);
      stream.launch(first, SMALL.withDynamicSharedBytes(SHARED_BYTES));
      stream.launch(module.kernel("doNothing"), SMALL.withDynamicSharedBytes(SHARED_BYTES));
      stream.synchronize();
    }
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void closedModule_saysThatItIsClosed_andItsNamesThatTheCudaIs(
      Cuda cuda, @NonBlocking CudaStream stream) {
    CudaModule module = TestKernels.launches(cuda);
    CudaModule open = TestKernels.launches(cuda);
    String text = module.toString();
    CudaKernel _ = module.kernel("scale");
    module.close();
    CompletableFuture<Void> inside =
        stream.addCallback(() -> {
          for (String name : List.of("scale", "add")) {
            assertThatThrownBy(() -> module.kernel(name))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage(text + " is closed");
          }
        });
    inside.join();
    assertThatThrownBy(module::kernelNames).hasMessage(text + " is closed");
    assertThat(open.kernelNames()).contains("scale");
    stream.close();
    cuda.close();
    assertThatThrownBy(open::kernelNames)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Cuda is closed");
  }
}
