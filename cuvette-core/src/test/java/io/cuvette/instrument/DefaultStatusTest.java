package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How a call fails where nothing is said about that. */
class DefaultStatusTest {
  private static CudaStatus of(String call) {
    return DefaultStatus.of(call, FaultMode.ONCE);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "memAlloc",
        "memAllocManaged",
        "memHostAlloc",
        "memHostRegister",
        "memAllocAsync",
        "memAllocFromPoolAsync",
        "memPoolCreate",
        "memAddressReserve",
        "memCreate",
        "memMap",
        "memPoolImportFromShareableHandle",
        "memPoolImportPointer",
        "ipcOpenMemHandle",
        "ipcOpenEventHandle",
        "callMalloc",
        "libraryLoadData",
        "streamCreateWithPriority",
        "eventCreate",
        "userObjectCreate",
        "graphInstantiateWithParams"
      })
  void whatMakesMemoryOrHandles_failsForWantOfMemory(String call) {
    assertThat(of(call)).isEqualTo(CudaStatus.OUT_OF_MEMORY);
    assertThat(DefaultStatus.of(call, FaultMode.AFTER_EFFECT)).isEqualTo(CudaStatus.LAUNCH_FAILED);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "ctxSynchronize",
        "streamQuery",
        "streamSynchronize",
        "eventQuery",
        "eventSynchronize",
        "eventElapsedTime"
      })
  void whatWaitsOrAsks_reportsAKernel(String call) {
    assertThat(of(call)).isEqualTo(CudaStatus.LAUNCH_FAILED);
  }

  @ParameterizedTest
  @ValueSource(strings = {"memFree", "memFreeAsync", "streamDestroy", "eventRecord", "graphLaunch"})
  void anythingElse_failsForAnUnknownReason(String call) {
    assertThat(of(call)).isEqualTo(CudaStatus.UNKNOWN);
  }

  @Test
  void endOfACapture_thatHadItsEffect_isThatOfAnInvalidOne() {
    assertThat(DefaultStatus.of("streamEndCapture", FaultMode.AFTER_EFFECT))
        .isEqualTo(CudaStatus.STREAM_CAPTURE_INVALIDATED);
    assertThat(of("streamEndCapture")).isEqualTo(CudaStatus.UNKNOWN);
  }
}
