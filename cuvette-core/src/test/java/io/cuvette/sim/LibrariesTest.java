package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.KernelParameter;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class LibrariesTest {
  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse(""));

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
}
