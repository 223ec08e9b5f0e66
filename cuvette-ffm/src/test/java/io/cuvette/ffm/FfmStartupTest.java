package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.ffm.library.DriverLibrary;
import io.cuvette.ffm.library.RuntimeLibrary;
import io.cuvette.ffm.library.Versions;
import io.cuvette.ffm.link.SharedLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A driver that cannot be used is one clear error, and never more than that. */
class FfmStartupTest {
  private static final String SIMULATED = "Cuda.open(CudaOptions.simulated())";
  private static final String LIBRARY_OF_LINUX = "the library has the name that Linux gives it";

  @TempDir private Path folder;

  private static CudaException failure(CudaDriverProvider provider) {
    assertThat(provider.isAvailable()).isFalse();
    Throwable[] thrown = new Throwable[1];
    assertThatThrownBy(() -> provider.open(""))
        .isInstanceOf(CudaException.class)
        .satisfies(e -> thrown[0] = e);
    return (CudaException) thrown[0];
  }

  @Test
  void driver_isNamed() {
    try (CudaDriver driver = StubLibrary.compile(folder).open()) {
      assertThat(new FfmDriverProvider().name()).isEqualTo("gpu");
      assertThat(driver.name()).isEqualTo("ffm");
      assertThat(driver.isSimulated()).isFalse();
      assertThat(driver.devices().runtimeGetVersion()).isEqualTo(RuntimeLibrary.version());
    }
  }

  @Test
  void goodDriver_isAvailable() {
    assertThat(StubLibrary.compile(folder).provider().isAvailable()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"devices=2", "x", "=", ","})
  void settings_areRefused(String settings) {
    assertThatThrownBy(() -> new FfmDriverProvider().open(settings))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(settings)
        .hasMessageContaining("a GPU has no settings");
  }

  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = LIBRARY_OF_LINUX)
  void missingLibrary_saysWhatToInstallAndHowToDoWithout() {
    CudaException e = failure(StubLibrary.provider(folder.resolve("libcuda.so.1").toString()));
    assertThat(e.status()).isEqualTo(CudaStatus.FILE_NOT_FOUND);
    assertThat(e)
        .hasMessageContaining("-Dcuvette.libcuda: ")
        .hasMessageContaining("libcuda.so.1")
        .hasMessageContaining("No such file or directory")
        .hasMessageContaining("install the NVIDIA driver")
        .hasMessageContaining(SIMULATED)
        .hasMessageContaining("-Dcuvette.device=sim")
        .hasMessageContaining("CUVETTE_DEVICE=sim");
  }

  @Test
  void libraryThatNobodyNamed_isMissingWithoutWhatNamesIt() throws ReflectiveOperationException {
    assumeTrue(System.getProperty("cuvette.libcuda") == null, "another library is asked for");
    CudaDriverProvider fresh = StubLibrary.fresh();
    assumeTrue(!fresh.isAvailable(), "there is a driver");
    assertThatThrownBy(() -> fresh.open(""))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining(SIMULATED)
        .hasMessageNotContaining("-Dcuvette.libcuda");
  }

  /** A process has one driver library: what is named later is not looked at. */
  @Test
  void libraryThatIsLoaded_isUsed_whateverIsNamedAfterwards() throws ReflectiveOperationException {
    CudaDriverProvider fresh = StubLibrary.fresh();
    String good = StubLibrary.compile(folder).file().toString();
    StubLibrary.withLibrary(good, () -> fresh.open("")).close();
    String none = folder.resolve("none.so").toString();
    assertThat(StubLibrary.withLibrary(none, fresh::isAvailable)).isTrue();
    try (CudaDriver driver = StubLibrary.withLibrary(none, () -> fresh.open(""))) {
      assertThat(driver.devices().deviceGetCount()).isEqualTo(2);
    }
  }

  @Test
  void versions_areWrittenAsPeopleDo() {
    int[] numbers = {11_080, 12_000, 12_080, 12_090, 13_010, 13_000, 9_020, 12_100};
    assertThat(IntStream.of(numbers).mapToObj(Versions::text))
        .containsExactly("11.8", "12.0", "12.8", "12.9", "13.1", "13.0", "9.2", "12.10");
  }

  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = LIBRARY_OF_LINUX)
  void missingLibrary_thatIsInstalledLater_isFoundThen() {
    Path file = folder.resolve("libcuda.so.1");
    CudaDriverProvider provider = StubLibrary.provider(file.toString());
    failure(provider);
    StubLibrary.compile(folder);
    assertThat(provider.isAvailable()).isTrue();
  }

  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = LIBRARY_OF_LINUX)
  void brokenLibrary_isNotCalledMissing() throws IOException {
    Path file = Files.writeString(folder.resolve("libcuda.so.1"), "no library");
    CudaException e = failure(StubLibrary.provider(file.toString()));
    assertThat(e.status()).isEqualTo(CudaStatus.SHARED_OBJECT_INIT_FAILED);
    assertThat(e).hasMessageContaining(file.toString()).hasMessageContaining(SIMULATED);
  }

  /** The loader of the system, which looks no further than the 0, has nothing against it. */
  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = LIBRARY_OF_LINUX)
  void nameThatNoLibraryHas_isNotFound() {
    CudaException e = failure(StubLibrary.provider("libc.so.6\0"));
    assertThat(e.status()).isEqualTo(CudaStatus.FILE_NOT_FOUND);
    assertThat(e).hasMessageContaining("libc.so.6\0 was not found");
  }

  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = LIBRARY_OF_LINUX)
  void driverBringsTheLibraryOfThePlatform_whateverWasAskedFor() {
    assertThat(failure(StubLibrary.provider(folder.resolve("other.so").toString())))
        .hasMessageContaining("other.so: cannot open")
        .hasMessageContaining("which brings libcuda.so.1;");
  }

  @Test
  void libraryName_isThatOfThePlatform() {
    assumeTrue(System.getProperty("cuvette.libcuda") == null, "another library is asked for");
    assertThat(DriverLibrary.name())
        .isEqualTo(SharedLibraries.isWindows() ? "nvcuda.dll" : "libcuda.so.1");
  }

  @Test
  @DisabledOnOs(
      value = {OS.WINDOWS, OS.MAC},
      disabledReason = LIBRARY_OF_LINUX)
  void anotherLibrary_isNoDriver() {
    CudaException e = failure(StubLibrary.provider("libm.so.6"));
    assertThat(e.status()).isEqualTo(CudaStatus.SHARED_OBJECT_SYMBOL_NOT_FOUND);
    assertThat(e).hasMessageContaining("libm.so.6 is no CUDA driver");
  }

  @Test
  void driverWithoutVersionedSearch_isTooOld() {
    CudaException e = failure(StubLibrary.compile(folder, "OLD_DRIVER").provider());
    assertThat(e.status()).isEqualTo(CudaStatus.SYSTEM_DRIVER_MISMATCH);
    assertThat(e)
        .hasMessageContaining("supports CUDA 11.8")
        .hasMessageContaining("needed is CUDA 12.0")
        .hasMessageContaining("install NVIDIA driver 525 or newer")
        .hasMessageContaining(SIMULATED);
  }

  @Test
  void driverBelowTheOldestVersion_isTooOld() {
    StubLibrary library = StubLibrary.compile(folder);
    library.version(11_080);
    CudaException e = failure(library.provider());
    assertThat(e.status()).isEqualTo(CudaStatus.SYSTEM_DRIVER_MISMATCH);
    assertThat(e).hasMessageContaining("supports CUDA 11.8");
  }

  @Test
  void stubOfTheToolkit_isNamed() {
    CudaException e = failure(StubLibrary.compile(folder, "TOOLKIT_STUB").provider());
    assertThat(e.status()).isEqualTo(CudaStatus.STUB_LIBRARY);
    assertThat(e)
        .hasMessageContaining("stub")
        .hasMessageContaining("LD_LIBRARY_PATH")
        .hasMessageContaining(SIMULATED);
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuInit", "cuDriverGetVersion"})
  void functionThatSaysStub_isNamed(String function) {
    StubLibrary library = StubLibrary.compile(folder);
    library.fail(function, 34);
    CudaException e = failure(library.provider());
    assertThat(e.status()).isEqualTo(CudaStatus.STUB_LIBRARY);
    assertThat(e).hasMessageContaining(function).hasMessageContaining("LD_LIBRARY_PATH");
  }

  @Test
  void driverThatDoesNotTellItsVersion_isNotTakenForAnOldOne() {
    StubLibrary library = StubLibrary.compile(folder);
    library.fail("cuDriverGetVersion", 999);
    CudaException e = failure(library.provider());
    assertThat(e.status()).isEqualTo(CudaStatus.UNKNOWN);
    assertThat(e).hasMessageContaining("cuDriverGetVersion()");
  }

  @Test
  void noDevice_isNamed() {
    StubLibrary library = StubLibrary.compile(folder);
    library.fail("cuInit", 100);
    CudaException e = failure(library.provider());
    assertThat(e.status()).isEqualTo(CudaStatus.NO_DEVICE);
    assertThat(e).hasMessageContaining("CUDA_VISIBLE_DEVICES").hasMessageContaining(SIMULATED);
  }

  @Test
  void emptyListOfDevices_isNoDevice() {
    StubLibrary library = StubLibrary.compile(folder);
    library.devices(0);
    assertThat(failure(library.provider()).status()).isEqualTo(CudaStatus.NO_DEVICE);
  }

  @Test
  void driverThatDoesNotStart_isNamed() {
    StubLibrary library = StubLibrary.compile(folder);
    library.fail("cuInit", 999);
    assertThat(failure(library.provider()))
        .hasMessageContaining("cuInit(flags=0)")
        .hasMessageContaining("nvidia-smi")
        .hasMessageContaining(SIMULATED);
  }

  @Test
  void neededFunctionThatIsMissing_isNamedAtTheStart() {
    StubLibrary library = StubLibrary.compile(folder);
    library.hide("cuMemAlloc");
    assertThatThrownBy(library::open)
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> assertThat(e.status()).isEqualTo(CudaStatus.SHARED_OBJECT_SYMBOL_NOT_FOUND))
        .hasMessageContaining("cuGetProcAddress(symbol=cuMemAlloc, version=3020)")
        .hasMessageContaining("install a newer NVIDIA driver");
    assertThat(library.retained(0)).isZero();
  }

  @Test
  void otherFunctionThatIsMissing_isNamedWhenItIsUsed() {
    StubLibrary library = StubLibrary.compile(folder);
    library.hide("cuLaunchHostFunc");
    try (CudaDriver driver = library.open()) {
      library.makeCurrent(0xeee);
      assertThatThrownBy(() -> driver.streams().launchHostFunc(0, 5, () -> {}))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("cuLaunchHostFunc")
          .hasMessageContaining("as of CUDA 10.0");
      assertThat(library.current()).isEqualTo(0xeee);
      assertThat(driver.memory().memAlloc(0, 8)).isEqualTo(24);
    }
  }

  @Test
  void nodesThatADriverOfCuda12Lacks_areNamed_andTheOthersAreAdded() {
    StubLibrary library = StubLibrary.compile(folder);
    library.version(12_000);
    try (CudaDriver driver = library.open()) {
      long[] none = {};
      driver.graphs().graphAddNode(0, 0xabc, none, new GraphNodeParams.Empty());
      driver.graphs().graphAddNode(0, 0xabc, none, new GraphNodeParams.Copy(16, 32, 8));
      GraphNodeParams conditional = new GraphNodeParams.Conditional(1, GraphConditionType.IF, 1);
      List<ThrowingCallable> newer =
          List.of(
              () -> driver.graphs().graphAddNode(0, 0xabc, none, conditional),
              () -> driver.captures().streamBeginCaptureToGraph(0, 5, 0xabc, none, 2),
              () -> driver.captures().streamGetCaptureDependencies(0, 5),
              () -> driver.captures().streamUpdateCaptureDependencies(0, 5, none));
      for (ThrowingCallable call : newer) {
        assertThatThrownBy(call)
            .isInstanceOfSatisfying(
                CudaException.class,
                e -> assertThat(e.status()).isEqualTo(CudaStatus.CALL_REQUIRES_NEWER_DRIVER))
            .hasMessageContaining("as of CUDA 12.3");
      }
    }
  }

  @Test
  void driverOfCuda12_waitsForTheGivenDevice() {
    StubLibrary library = StubLibrary.compile(folder);
    library.version(12_000);
    try (CudaDriver driver = library.open()) {
      driver.memory().memAlloc(0, 8);
      driver.memory().memAlloc(1, 8);
      for (long current : new long[] {0xc000, 0xc001, 0xeee}) {
        library.reset();
        library.makeCurrent(current);
        driver.devices().ctxSynchronize(1);
        assertThat(library.calls()).contains("cuCtxSynchronize@2000() in c001");
        assertThat(library.current()).isEqualTo(current);
      }
    }
  }

  @Test
  void driverOfCuda12_isServedWithWhatItHas() {
    StubLibrary library = StubLibrary.compile(folder);
    library.version(12_000);
    try (CudaDriver driver = library.open()) {
      driver.memory().memAlloc(1, 8);
      library.reset();
      library.makeCurrent(0xc001);
      driver.devices().ctxSynchronize(1);
      driver.memory().memPrefetchAsync(1, 0x10, 4096, 1, 0, 5);
      driver.memory().memPrefetchAsync(1, 0x10, 4096, 2, 0, 5);
      driver.memory().memAdvise(1, 0x10, 4096, 3, 1, 1);
      driver.events().eventElapsedTime(1, 6, 7);
      library.answer(0xeee, 41);
      assertThat(driver.streams().streamGetDevice(1, 5)).isEqualTo(1);
      assertThat(library.current()).isEqualTo(0xc001);
      assertThat(library.calls())
          .containsExactly(
              "cuCtxSynchronize@2000() in c001",
              "cuMemPrefetchAsync@8000(10, 4096, 40, 5) in c001",
              "cuMemPrefetchAsync@8000(10, 4096, -1, 5) in c001",
              "cuMemAdvise@8000(10, 4096, 3, 41) in c001",
              "cuEventElapsedTime@2000(6, 7) in c001",
              "cuStreamGetCtx@9020(5) in c001",
              "cuCtxSetCurrent@4000(eee) in c001",
              "cuCtxGetDevice@2000() in eee",
              "cuCtxSetCurrent@4000(c001) in eee");
      assertThatThrownBy(() -> driver.memory().memAdvise(1, 0x10, 4096, 3, 3, 1))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("cuMemAdvise as of CUDA 12.2");
    }
  }
}
