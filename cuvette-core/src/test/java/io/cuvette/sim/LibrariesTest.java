package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class LibrariesTest {
  /** Under this seed code is loaded late. */
  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("seed=1"));

  @AfterEach
  void close() {
    driver.close();
  }

  private static byte[] ptx(String code) {
    return ("// x\n.version 8.0\n.target sm_75\n" + code).getBytes(StandardCharsets.US_ASCII);
  }

  @Test
  void commentsAndAlignmentOfPointers_areNoParameters() {
    long library =
        driver
            .kernels()
            .libraryLoadData(
                ptx(
                    "/* .entry a() */ .visible .entry k(.param .u32 n, // .param .u8 x\n"
                        + ".param .u64 .ptr .global .align 16 p, .param .align 4 .b8 s[6])\n{}"));
    long kernel = driver.kernels().libraryGetKernel(library, "k");
    assertThat(driver.kernels().libraryGetKernelCount(library)).isEqualTo(1);
    assertThat(driver.kernels().kernelGetParamInfo(kernel, 1)).isEqualTo(new KernelParameter(8, 8));
    assertThat(driver.kernels().kernelGetParamInfo(kernel, 2))
        .isEqualTo(new KernelParameter(16, 6));
    assertThat(driver.report()).contains("library of 1 kernels");
    driver.kernels().libraryUnload(library);
    assertThat(driver.liveLibraries()).isZero();
  }

  /** As text in C does: what lies behind is none of it. */
  @Test
  void code_endsAtItsFirstZero() {
    for (String end : new String[] {"", "\0", "\0\0", "\0.entry b(){}", "\0 /* .entry c(){"}) {
      long library = driver.kernels().libraryLoadData(ptx(".entry a(){}" + end));
      assertThat(driver.kernels().libraryGetKernelCount(library)).isEqualTo(1);
      assertThatThrownBy(() -> driver.kernels().libraryGetKernel(library, "b"))
          .hasMessageContaining("one of the kernels [a]");
      driver.kernels().libraryUnload(library);
    }
  }

  @Test
  void structure_liesWhereItsOwnAlignmentIs() {
    long library =
        driver
            .kernels()
            .libraryLoadData(
                ptx(".entry k(.param .u8 c, .param .align 16 .b8 s[3], .param .u8 d){}"));
    long kernel = driver.kernels().libraryGetKernel(library, "k");
    assertThat(driver.kernels().kernelGetParamInfo(kernel, 1))
        .isEqualTo(new KernelParameter(16, 3));
    assertThat(driver.kernels().kernelGetParamInfo(kernel, 2))
        .isEqualTo(new KernelParameter(19, 1));
  }

  @Test
  void unknownName_namesTheKnownOnes() {
    long library = driver.kernels().libraryLoadData(ptx(".entry a(){} .entry b(){}"));
    assertThatThrownBy(() -> driver.kernels().libraryGetKernel(library, "c"))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("name: c (expected: one of the kernels [a, b])");
  }

  private static void refused(
      SimulatedDriver driver, byte[] image, CudaStatus status, String text) {
    assertThatThrownBy(() -> driver.kernels().libraryLoadData(image))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining(text)
        .extracting(e -> ((CudaException) e).status())
        .isEqualTo(status);
    assertThat(driver.liveLibraries()).isZero();
  }

  private static byte[] ptxOf(String version, String target) {
    return ".version %s\n.target %s\n.entry k(){}"
        .formatted(version, target)
        .getBytes(StandardCharsets.US_ASCII);
  }

  @Test
  void ptxThatIsNewerThanTheDriver_isRefused() {
    String[][] newest = {
      {"11080", "7.8", "7.9"},
      {"12040", "8.4", "8.5"},
      {"12000", "8.0", "8.1"},
      {"12050", "8.5", "8.6"},
      {"12060", "8.5", "8.6"},
      {"12090", "8.8", "8.9"},
      {"13000", "9.0", "9.1"},
      {"13010", "9.1", "10.0"},
      {"13060", "9.6", "9.7"}
    };
    for (String[] each : newest) {
      try (SimulatedDriver old =
          SimulatedDriver.open(SimulatedOptions.parse("driver=" + each[0]))) {
        old.kernels().libraryUnload(old.kernels().libraryLoadData(ptxOf(each[1], "sm_75")));
        refused(
            old,
            ptxOf(each[2], "sm_75"),
            CudaStatus.UNSUPPORTED_PTX_VERSION,
            ".version %s (expected: <= %s, ".formatted(each[2], each[1]));
      }
    }
  }

  @Test
  void codeForAnotherArchitecture_isRefused() {
    for (String target : new String[] {"sm_50", "sm_90", "sm_90a"}) {
      long library = driver.kernels().libraryLoadData(ptxOf("8.0", target));
      driver.kernels().libraryUnload(library);
    }
    refused(
        driver, ptxOf("8.0", "sm_100"), CudaStatus.INVALID_PTX, ".target sm_100 (expected: sm_90");
    refused(driver, ptxOf("8.0", "sm_80a"), CudaStatus.INVALID_PTX, ".target sm_80a");
    byte[] cubin = new byte[64];
    System.arraycopy(new byte[] {127, 'E', 'L', 'F', 2, 1, 1, 0x41, 8}, 0, cubin, 0, 9);
    cubin[18] = (byte) 190;
    for (int other : new int[] {75, 89, 91, 100, 120}) {
      cubin[49] = (byte) other;
      refused(driver, cubin, CudaStatus.NO_BINARY_FOR_GPU, "a cubin for sm_" + other);
    }
    cubin[49] = 90;
    refused(driver, cubin, CudaStatus.INVALID_IMAGE, "no other code is read here");
    cubin[8] = 7; // what older compilers wrote, with the architecture one byte before
    for (int other : new int[] {75, 89, 91, 100, 120}) {
      cubin[48] = (byte) other;
      refused(driver, cubin, CudaStatus.NO_BINARY_FOR_GPU, "a cubin for sm_" + other);
    }
    cubin[48] = 90;
    cubin[49] = 75;
    refused(driver, cubin, CudaStatus.INVALID_IMAGE, "no other code is read here");
  }

  /** However short it is: no byte is read that is not there. */
  @Test
  void codeThatIsCutOff_isRefused_whereverThatIs() {
    byte[] cubin = new byte[64];
    System.arraycopy(new byte[] {127, 'E', 'L', 'F', 2, 1, 1, 0x41, 8}, 0, cubin, 0, 9);
    cubin[18] = (byte) 190;
    cubin[49] = 100;
    for (int length = 0; length <= cubin.length; length++) {
      byte[] cut = Arrays.copyOf(cubin, length);
      if (length < 50) {
        refused(driver, cut, CudaStatus.INVALID_IMAGE, "image: %d bytes".formatted(length));
      } else {
        refused(driver, cut, CudaStatus.NO_BINARY_FOR_GPU, "a cubin for sm_100");
      }
    }
    for (int at : new int[] {0, 1, 2, 3, 18}) {
      byte[] other = cubin.clone();
      other[at]++;
      refused(driver, other, CudaStatus.INVALID_IMAGE, "no other code is read here");
    }
    byte[] text = ptx(".entry a(){}");
    byte[] ended = Arrays.copyOf(text, text.length + 9);
    ended[text.length + 1] = '.';
    driver.kernels().libraryUnload(driver.kernels().libraryLoadData(ended));
    byte[] behind = new byte[text.length + 1];
    System.arraycopy(text, 0, behind, 1, text.length);
    refused(driver, behind, CudaStatus.INVALID_IMAGE, "no other code is read here");
    assertThat(driver.liveLibraries()).isZero();
  }

  @Test
  void otherCode_isRefused_andLeavesNothing() {
    assertThatThrownBy(() -> driver.kernels().libraryLoadData(new byte[] {127, 'E', 'L', 'F'}))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("image: 4 bytes (expected: PTX");
    assertThatThrownBy(() -> driver.kernels().libraryLoadData(ptx(".entry a(.param .pred p)")))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("parameter 0 of kernel a: .param .pred p");
    assertThat(driver.liveLibraries()).isZero();
  }

  @Test
  void sanitizer_reportsKernelsOfUnloadedLibraries_andLeaks() {
    List<Misuse> found = new ArrayList<>();
    SanitizerDriver watched =
        SanitizerDriver.reporting(driver, (SanitizerReport each) -> found.add(each.misuse()));
    long library = watched.kernels().libraryLoadData(ptx(".entry a(){}"));
    long kernel = watched.kernels().libraryGetKernel(library, "a");
    assertThat(watched.kernels().kernelGetName(kernel)).isEqualTo("a");
    assertThat(watched.leaks()).hasSize(1);
    assertThat(found).isEmpty();
    watched.kernels().libraryUnload(library);
    assertThatThrownBy(() -> watched.kernels().kernelGetName(kernel))
        .isInstanceOf(CudaException.class);
    assertThat(found).containsExactly(Misuse.DESTROYED_HANDLE);
    assertThat(watched.leaks()).isEmpty();
  }

  @Test
  void kernelsThatAreListed_areOneAtLeast() {
    long library = driver.kernels().libraryLoadData(ptx(".entry a(){} .entry b(){}"));
    assertThatThrownBy(() -> driver.kernels().libraryEnumerateKernels(library, 0))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("count: 0 (expected: >= 1)");
    assertThat(driver.kernels().libraryEnumerateKernels(library, 1)).doesNotContain(0);
    assertThat(driver.kernels().libraryEnumerateKernels(library, 3)).endsWith(0);
  }

  /** Code is loaded when it is first asked about, and a device loads it when it is idle. */
  @Test
  void firstQuestionAboutParameters_waitsForTheDevice_andNoOther() {
    long library = driver.kernels().libraryLoadData(ptx(".entry a(.param .u32 n){} .entry b(){}"));
    assertThat(driver.liveLibraries()).isEqualTo(1);
    long kernel = driver.kernels().libraryGetKernel(library, "a");
    AtomicBoolean ran = new AtomicBoolean();
    CountDownLatch goOn = SimTestBase.hold(driver, 0, 0);
    driver.streams().launchHostFunc(0, 0, () -> ran.set(true));
    Thread _ =
        Thread.ofVirtual()
            .start(() -> {
              LockSupport.parkNanos(20_000_000);
              goOn.countDown();
            });
    assertThat(driver.kernels().kernelGetParamInfo(kernel, 0)).isEqualTo(new KernelParameter(0, 4));
    assertThat(ran).as("what was queued before").isTrue();
    CountDownLatch again = SimTestBase.hold(driver, 0, 0);
    driver.streams().launchHostFunc(0, 0, () -> ran.set(false));
    assertThat(driver.kernels().kernelGetParamInfo(kernel, 0).size()).isEqualTo(4);
    assertThat(ran).as("nothing is waited for").isTrue();
    again.countDown();
    driver.streams().streamSynchronize(0, 0);
  }

  /** As with CUDA_MODULE_LOADING=EAGER; so what is queued before is not done by chance. */
  @Test
  void firstQuestionAboutParameters_waitsForNothing_whereCodeIsLoadedEarly() {
    for (long seed : new long[] {0, 11, 12, 23, 24, -1, -13}) {
      SimulatedOptions lazy = SimulatedOptions.DEFAULTS.withSeed(seed).withPace(SimulatedPace.LAZY);
      try (SimulatedDriver other = Attended.only(SimulatedDriver.open(lazy))) {
        long library = other.kernels().libraryLoadData(ptx(".entry a(.param .u32 n){}"));
        long kernel = other.kernels().libraryGetKernel(library, "a");
        long memory = other.memory().memAlloc(0, 64);
        other.transfers().memsetD8Async(0, memory, (byte) 1, 64, 0);
        assertThat(other.kernels().kernelGetParamInfo(kernel, 0).size()).isEqualTo(4);
        boolean isEarly = Math.floorMod(seed, 24) >= 12;
        assertThat(other.streams().streamQuery(0, 0)).as("seed %d", seed).isEqualTo(!isEarly);
      }
    }
  }

  @Test
  void librariesThatAreLoaded_areCounted_andNamed() {
    long first = driver.kernels().libraryLoadData(ptx(".entry a(){}"));
    long second = driver.kernels().libraryLoadData(ptx(".entry a(){}"));
    assertThat(second).isNotEqualTo(first);
    assertThat(driver.liveLibraries()).isEqualTo(2);
    driver.kernels().libraryUnload(first);
    assertThat(driver.liveLibraries()).isEqualTo(1);
    assertThat(driver.kernels().libraryGetKernelCount(second)).isEqualTo(1);
    driver.kernels().libraryUnload(second);
    assertThat(driver.liveLibraries()).isZero();
    assertThatThrownBy(() -> driver.kernels().libraryUnload(second))
        .isInstanceOf(CudaException.class);
  }
}
