package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.EnumSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class CudaStatusTest {
  @Test
  void errorsOfKernels_loseTheContext_andNoOthers() {
    Set<CudaStatus> losing =
        Stream.of(CudaStatus.values()).filter(CudaStatus::losesContext).collect(Collectors.toSet());
    assertThat(losing)
        .isEqualTo(
            EnumSet.of(
                CudaStatus.ILLEGAL_ADDRESS,
                CudaStatus.LAUNCH_TIMEOUT,
                CudaStatus.ASSERT,
                CudaStatus.HARDWARE_STACK_ERROR,
                CudaStatus.ILLEGAL_INSTRUCTION,
                CudaStatus.MISALIGNED_ADDRESS,
                CudaStatus.INVALID_ADDRESS_SPACE,
                CudaStatus.INVALID_PC,
                CudaStatus.LAUNCH_FAILED));
  }

  @Test
  void everyStatus_isThatOfItsNumber() {
    for (CudaStatus status : CudaStatus.values()) {
      if (status != CudaStatus.UNKNOWN) {
        assertThat(CudaStatus.of(status.code())).isEqualTo(status);
      }
      assertThat(CudaStatus.describe(status.code()))
          .startsWith(status.cudaName() + " (" + status.code() + "): ")
          .endsWith(status.meaning());
    }
    assertThat(CudaStatus.describe(123_456))
        .isEqualTo("CUresult 123456: a status newer than this library");
  }
}
