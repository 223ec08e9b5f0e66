package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.ComputeCapability;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.TestKernels;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Code that cannot run here gets one error, which says what it is and what is here. */
class BadCodeTest {
  private static final LaunchConfig SMALL = LaunchConfig.of(1, 32);

  private static byte[] ptx(String version, String target) {
    return ".version %s\n.target %s\n.address_size 64\n.visible .entry nothing() { ret; }\n"
        .formatted(version, target)
        .getBytes(StandardCharsets.US_ASCII);
  }

  /** A driver may notice what is wrong when the code is loaded, or when it is first used. */
  private static CudaException refusal(Cuda cuda, byte[] code, String kernel) {
    return catchThrowableOfType(
        CudaException.class,
        () -> {
          try (CudaModule module = CudaModule.load(cuda, code)) {
            module.kernel(kernel).maxActiveBlocks(cuda.device(0), 32, 0);
          }
        });
  }

  @CudaTest
  void ptxForANewerDriver_isExplained_withBothVersions(Cuda cuda) {
    CudaException refused = refusal(cuda, ptx("99.0", "sm_75"), "nothing");
    assertThat(refused.status()).isEqualTo(CudaStatus.UNSUPPORTED_PTX_VERSION);
    int version = cuda.driverVersion();
    assertThat(refused)
        .hasMessageContaining("the code is PTX 99.0 for sm_75, which is newer than the driver")
        .hasMessageContaining("CUDA " + version / 1000 + "." + version % 1000 / 10)
        .hasMessageContaining("(expected: PTX of that CUDA or an older one");
  }

  @CudaTest
  void ptxForANewerArchitecture_isExplained_withWhatTheDeviceIs(Cuda cuda) {
    ComputeCapability here = cuda.device(0).computeCapability();
    assumeTrue(here.major() < 12, "the device is newer");
    CudaException refused = refusal(cuda, ptx("8.7", "sm_120"), "nothing");
    assertThat(refused.status()).isIn(CudaStatus.INVALID_PTX, CudaStatus.NO_BINARY_FOR_GPU);
    assertThat(refused)
        .hasMessageContaining("the code is PTX 8.7 for sm_120")
        .hasMessageContaining("device 0 of compute capability " + here);
  }

  @CudaTest
  void cubinOfAnotherArchitecture_isExplained_withWhatTheDeviceIs(Cuda cuda) {
    ComputeCapability here = cuda.device(0).computeCapability();
    assumeTrue(here.major() != 7, "the code is for this device");
    CudaException refused = refusal(cuda, TestKernels.code("turing.cubin"), "forTuring");
    assertThat(refused.status()).isEqualTo(CudaStatus.NO_BINARY_FOR_GPU);
    assertThat(refused)
        .hasMessageContaining("the code is a cubin for sm_75, and there is device 0 of compute")
        .hasMessageContaining("capability " + here)
        .hasMessageContaining("(expected: a cubin of the device's architecture, or PTX");
  }

  @CudaTest
  void versionOfTheDriver_isToldAsCudaWritesIt(Cuda cuda, ScriptedDriver script) {
    script.answer("driverGetVersion", _ -> 12_080);
    script.fail("libraryLoadData", CudaStatus.UNSUPPORTED_PTX_VERSION, 1);
    assertThatThrownBy(() -> TestKernels.launches(cuda))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("the driver, which has CUDA 12.8 (expected");
  }

  /** What failed first is what is reported. */
  @CudaTest
  void versionOfTheDriver_thatCannotBeAskedFor_isLeftOpen(Cuda cuda, ScriptedDriver script) {
    script.fail("driverGetVersion", CudaStatus.UNKNOWN);
    script.fail("libraryLoadData", CudaStatus.UNSUPPORTED_PTX_VERSION, 1);
    assertThatThrownBy(() -> TestKernels.launches(cuda))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("the driver, which has CUDA ? (expected");
  }

  @Test
  void devicesThatCodeIsNotFor_areThoseThatItWasUsedFor() {
    ScriptedDriver script = new ScriptedDriver();
    CudaOptions options = CudaOptions.simulated().withDevice("sim:devices=2");
    try (Cuda two = Cuda.open(options.withDecorator(script::over))) {
      String each = "device %d of compute capability " + two.device(0).computeCapability();
      script.fail("libraryLoadData", CudaStatus.NO_BINARY_FOR_GPU, 1);
      assertThatThrownBy(() -> TestKernels.launches(two))
          .hasMessageContaining(
              "and there is %s, %s (expected".formatted(each.formatted(0), each.formatted(1)));
      CudaKernel kernel = TestKernels.launches(two).kernel("doNothing");
      script.fail("launchKernel", CudaStatus.NO_BINARY_FOR_GPU, 1);
      assertThatThrownBy(() -> two.device(1).nullStream().launch(kernel, SMALL))
          .hasMessageContaining("and there is %s (expected".formatted(each.formatted(1)));
    }
  }

  /** What it is cannot be told here, and the driver may know more. */
  @CudaTest
  void codeThatIsNotKnown_andThatTheDriverTakes_isRefused_ifItHasNoKernels(
      Cuda cuda, ScriptedDriver script) {
    byte[] unknown = "no code".getBytes(StandardCharsets.US_ASCII);
    byte[] code = TestKernels.code("launches.ptx");
    script.answer("libraryGetKernelCount", _ -> 0);
    checkUnloaded(cuda, script, unknown, code);
    script.unscript("libraryGetKernelCount");
    script.fail("libraryGetKernelCount", CudaStatus.INVALID_IMAGE, 1);
    checkUnloaded(cuda, script, unknown, code);
    script.answer("libraryGetKernelCount", _ -> 1);
    checkLoaded(cuda, script, unknown, code);
    script.unscript("libraryGetKernelCount");
    script.fail("libraryGetKernelCount", CudaStatus.CALL_REQUIRES_NEWER_DRIVER, 1);
    checkLoaded(cuda, script, unknown, code);
  }

  private static void checkLoaded(Cuda cuda, ScriptedDriver script, byte[] unknown, byte[] code) {
    long library = cuda.driver().kernels().libraryLoadData(code);
    script.answer("libraryLoadData", _ -> library);
    try (CudaModule module = CudaModule.load(cuda, unknown)) {
      assertThat(module).hasToString("module 0x%x of 7 bytes of code".formatted(library));
      assertThat(module.kernel("doNothing").name()).isEqualTo("doNothing");
    }
    script.unscript("libraryLoadData");
  }

  private static void checkUnloaded(Cuda cuda, ScriptedDriver script, byte[] unknown, byte[] code) {
    long library = cuda.driver().kernels().libraryLoadData(code);
    script.answer("libraryLoadData", _ -> library);
    long before = script.count("libraryUnload");
    assertThatThrownBy(() -> CudaModule.load(cuda, unknown))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("7 bytes that begin with [6e 6f 20 63 6f 64 65]");
    assertThat(script.count("libraryUnload")).isEqualTo(before + 1);
    script.unscript("libraryLoadData");
  }

  @CudaTest
  void ptxThatDoesNotCompile_isExplained(Cuda cuda) {
    byte[] wrong =
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry nothing(.param .what p) {}\n"
            .getBytes(StandardCharsets.US_ASCII);
    CudaException refused = refusal(cuda, wrong, "nothing");
    assertThat(refused.status()).isEqualTo(CudaStatus.INVALID_PTX);
    assertThat(refused)
        .hasMessageContaining("the code is PTX 8.0 for sm_75 and does not compile for device 0");
  }

  @CudaTest
  void failuresInTheDriver_areExplained_whenTheCodeIsFirstUsed(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      script.fail("libraryGetKernel", CudaStatus.NO_BINARY_FOR_GPU, 1);
      assertThatThrownBy(() -> module.kernel("doNothing"))
          .hasMessageContaining("the code is PTX 8.0 for sm_75, and there is device 0 of compute");
      CudaKernel kernel = module.kernel("doNothing");
      script.fail("launchKernel", CudaStatus.NO_BINARY_FOR_GPU, 1);
      assertThatThrownBy(() -> stream.launch(kernel, SMALL))
          .hasMessageContaining("the code is PTX 8.0 for sm_75, and there is device 0 of compute");
      stream.launch(kernel, SMALL);
      stream.synchronize();
    }
  }

  @CudaTest
  void codeThatIsLinkedFirst_isRefused_beforeTheDriverIsCalled(Cuda cuda, ScriptedDriver script) {
    for (Kind kind : new Kind[] {Kind.LTOIR, Kind.OBJECT, Kind.LIBRARY}) {
      assertThatThrownBy(() -> CudaModule.load(cuda, KernelCode.of(kind, new byte[8])))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("code: %s (expected: PTX, CUBIN or FATBIN; link it first)".formatted(kind));
    }
    assertThat(script.count("libraryLoadData")).isZero();
  }

  /** Whether it is good is the driver's to say. */
  @CudaTest(simulatedOnly = true)
  void codeThatIsLoaded_isOfAnyKindForDevices(Cuda cuda, ScriptedDriver script) {
    byte[] ptx = TestKernels.code("launches.ptx");
    for (Kind kind : new Kind[] {Kind.PTX, Kind.CUBIN, Kind.FATBIN}) {
      long before = script.count("libraryLoadData");
      try (CudaModule module = CudaModule.load(cuda, KernelCode.of(kind, ptx))) {
        assertThat(module.kernelNames()).contains("scale");
      }
      assertThat(script.count("libraryLoadData")).as("%s", kind).isEqualTo(before + 1);
    }
  }

  @CudaTest
  void kernelAndBuffersOfAnotherCuda_areRefused_beforeTheDriverIsCalled(
      Subject subject, Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    Cuda another = subject.open(options -> options);
    try (CudaModule module = TestKernels.launches(cuda);
        CudaModule theirs = TestKernels.launches(another);
        Buffer data = another.allocate(64, another.device(0).nullStream())) {
      CudaKernel scale = module.kernel("scale");
      CudaKernel theirScale = theirs.kernel("scale");
      KernelArguments packed = theirScale.pack(data, 2f, 16);
      assertThatThrownBy(() -> stream.launch(theirScale, SMALL, data, 2f, 16))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("kernel scale belongs to another Cuda than the stream");
      assertThatThrownBy(() -> packed.launch(stream, SMALL))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("kernel scale belongs to another Cuda than the stream");
      assertThatThrownBy(() -> stream.launch(scale, SMALL, data, 2f, 16))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("argument 0: ")
          .hasMessageContaining("belongs to another Cuda");
      assertThat(script.count("launchKernel")).isZero();
    }
  }

  /** Bytes, code of each kind that a device takes, and a file. */
  @CudaTest
  void codeOfEachForm_isLoaded(Cuda cuda, @TempDir Path folder) throws IOException {
    byte[] code = TestKernels.code("launches.ptx");
    Path file = Files.write(folder.resolve("launches.ptx"), code);
    List<Callable<CudaModule>> forms =
        List.of(
            () -> CudaModule.load(cuda, code),
            () -> CudaModule.load(cuda, KernelCode.of(Kind.PTX, code)),
            () -> CudaModule.load(cuda, KernelCode.ofPtx(new String(code, StandardCharsets.UTF_8))),
            () -> CudaModule.load(cuda, file));
    for (Callable<CudaModule> form : forms) {
      try (CudaModule module = form.call()) {
        assertThat(module.kernel("scale").name()).isEqualTo("scale");
      } catch (Exception e) {
        throw new AssertionError("form " + forms.indexOf(form), e);
      }
    }
    Path nothing = folder.resolve("nothing");
    assertThatThrownBy(() -> CudaModule.load(cuda, nothing))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageStartingWith("file: %s (expected: one to read): ".formatted(nothing))
        .hasCauseInstanceOf(NoSuchFileException.class);
  }
}
