package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What a failed call tells. */
class CudaExceptionTest {
  @Test
  void explained_isTheSameFailureWithAText() {
    var failure = new CudaException(CudaStatus.INVALID_VALUE.code(), "cuMemAlloc(bytes=1)");

    CudaException explained = failure.explained("say less");

    assertThat(explained)
        .hasMessage(failure.getMessage() + ": say less")
        .hasCause(failure)
        .returns(CudaStatus.INVALID_VALUE, CudaException::status)
        .returns("cuMemAlloc(bytes=1)", CudaException::call);
  }

  @Test
  void explained_keepsANumberThatThisLibraryDoesNotKnow() {
    var failure = new CudaException(54321, "cuMemAlloc(bytes=1)");

    CudaException explained = failure.explained("ask NVIDIA");

    assertThat(explained.code()).isEqualTo(54321);
    assertThat(explained.status()).isEqualTo(CudaStatus.UNKNOWN);
    assertThat(explained).hasMessageContaining("54321");
  }
}
