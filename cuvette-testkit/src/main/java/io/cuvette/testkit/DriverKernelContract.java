package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Objects;

/** What every driver promises about libraries of kernels. Extend it in the tests of a driver. */
public abstract class DriverKernelContract {

  /** For subclasses. */
  protected DriverKernelContract() {}

  private static byte[] code() {
    try (InputStream text =
        Objects.requireNonNull(DriverKernelContract.class.getResourceAsStream("kernels.ptx"))) {
      return text.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * The kernels of PTX are found by name, each time with the same handle, and listed.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void kernels_areFoundByName_andListed(CudaDriver driver) {
    KernelCalls kernels = driver.kernels();
    long library = kernels.libraryLoadData(code());
    long add = kernels.libraryGetKernel(library, "add");
    assertThat(kernels.libraryGetKernel(library, "add")).isEqualTo(add);
    assertThat(kernels.libraryGetKernelCount(library)).isEqualTo(3);
    assertThat(
            Arrays.stream(kernels.libraryEnumerateKernels(library, 3))
                .mapToObj(kernels::kernelGetName))
        .containsExactlyInAnyOrder("add", "nothing", "mixed");
    Refused.with(CudaStatus.NOT_FOUND, () -> kernels.libraryGetKernel(library, "subtract"));
    kernels.libraryUnload(library);
  }

  /**
   * Each parameter has its place as in a C structure, and behind the last there is none.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void parameters_lieAsInAStructure(CudaDriver driver) {
    KernelCalls kernels = driver.kernels();
    long library = kernels.libraryLoadData(code());
    long mixed = kernels.libraryGetKernel(library, "mixed");
    long[][] expected = {{0, 1}, {2, 2}, {8, 8}, {16, 16}, {32, 8}};
    for (int i = 0; i < expected.length; i++) {
      assertThat(kernels.kernelGetParamInfo(mixed, i))
          .isEqualTo(new KernelParameter(expected[i][0], expected[i][1]));
    }
    Refused.with(CudaStatus.INVALID_VALUE, () -> kernels.kernelGetParamInfo(mixed, 5));
    long nothing = kernels.libraryGetKernel(library, "nothing");
    Refused.with(CudaStatus.INVALID_VALUE, () -> kernels.kernelGetParamInfo(nothing, 0));
    kernels.libraryUnload(library);
  }
}
