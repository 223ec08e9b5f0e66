package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.KernelParameter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Calls about kernels reach their function with each argument in place, without a context. */
class FfmKernelCallsTest {
  private static final long BIG = 0x7654_3210_fedcL;

  private StubLibrary library;
  private CudaDriver driver;

  @BeforeEach
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    library.makeCurrent(0);
    library.reset();
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void noted(String call) {
    assertThat(library.calls()).contains(call + " in 0");
  }

  @Test
  void code_isPassedWithAZeroBehindIt_andWithoutOptions() {
    library.answer(BIG, 0);
    assertThat(driver.kernels().libraryLoadData("code".getBytes(StandardCharsets.US_ASCII)))
        .isEqualTo(BIG);
    noted("cuLibraryLoadData@12000(code, 0, 0, 0, 0, 0, 0)");
  }

  @Test
  void libraryAndName_arePassed() {
    library.answer(BIG, 0);
    assertThat(driver.kernels().libraryGetKernel(9, "add")).isEqualTo(BIG);
    driver.kernels().libraryUnload(BIG);
    noted("cuLibraryGetKernel@12000(9, add)");
    noted("cuLibraryUnload@12000(76543210fedc)");
  }

  @Test
  void kernels_areCountedAndListed() {
    library.answer(2L | 7L << 32, BIG);
    assertThat(driver.kernels().libraryGetKernelCount(9)).isEqualTo(2);
    library.answer(5, BIG);
    assertThat(driver.kernels().libraryEnumerateKernels(9, 3)).containsExactly(5, BIG, 0);
    assertThat(driver.kernels().libraryEnumerateKernels(9, 1)).containsExactly(5);
    noted("cuLibraryEnumerateKernels@12040(3, 9)");
    assertThatThrownBy(() -> driver.kernels().libraryEnumerateKernels(9, 0))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("count=0");
  }

  @Test
  void nameAndParameter_areRead() {
    library.answer(16, 24);
    assertThat(driver.kernels().kernelGetName(BIG)).isEqualTo("kernel of the stub");
    assertThat(driver.kernels().kernelGetParamInfo(BIG, 3)).isEqualTo(new KernelParameter(16, 24));
    noted("cuKernelGetName@12030(76543210fedc)");
    assertThat(library.calls()) // in some context, which the driver wants
        .anyMatch(call -> call.startsWith("cuKernelGetParamInfo@12040(76543210fedc, 3) in "))
        .noneMatch(call -> call.equals("cuKernelGetParamInfo@12040(76543210fedc, 3) in 0"));
  }

  @Test
  void failures_nameTheCall() {
    library.fail("cuKernelGetName", 1);
    assertThatThrownBy(() -> driver.kernels().kernelGetName(9))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuKernelGetName(kernel=0x9)");
    library.fail("cuKernelGetParamInfo", 1);
    assertThatThrownBy(() -> driver.kernels().kernelGetParamInfo(9, 4))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuKernelGetParamInfo(kernel=0x9, index=4)");
  }
}
