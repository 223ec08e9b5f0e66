package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Functions that nothing works without are missed when the driver is opened, and not later. */
class MissingFunctionsTest {
  @TempDir private static Path folder;
  private static StubLibrary library;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cuInit",
        "cuDriverGetVersion",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDeviceGetAttribute",
        "cuDevicePrimaryCtxRetain",
        "cuDevicePrimaryCtxRelease",
        "cuCtxGetCurrent",
        "cuCtxSetCurrent",
        "cuCtxSynchronize",
        "cuThreadExchangeStreamCaptureMode",
        "cuMemAlloc",
        "cuMemFree",
        "cuMemHostAlloc",
        "cuMemFreeHost",
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync",
        "cuMemsetD8Async",
        "cuPointerGetAttribute",
        "cuStreamCreateWithPriority",
        "cuStreamDestroy",
        "cuStreamSynchronize",
        "cuStreamWaitEvent",
        "cuEventCreate",
        "cuEventDestroy",
        "cuEventRecord",
        "cuEventQuery"
      })
  void functionThatIsMissing_isNamedWhenTheDriverIsOpened(String function) {
    if (library == null) {
      library = StubLibrary.compile(folder);
    }
    library.hide(function);
    assertThatThrownBy(library::open)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuGetProcAddress(symbol=" + function + ", version=")
        .hasMessageContaining("install a newer NVIDIA driver");
  }
}
