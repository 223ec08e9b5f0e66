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

  /** Here no frame of a program is above one of the library's. */
  @Test
  void firstFailure_onAThreadOfTheLibrary_namesTheCallAlone() {
    FirstFailure failures = new FirstFailure();
    assertThat(failures.explain(CudaStatus.INVALID_VALUE, "call 0")).isEmpty();
    assertThat(failures.explain(CudaStatus.ILLEGAL_ADDRESS, "call 1")).isEmpty();
    assertThat(failures.explain(CudaStatus.ILLEGAL_ADDRESS, "call 2"))
        .isEqualTo("the first call that failed was call 1");
    assertThat(failures.explain(CudaStatus.ASSERT, "call 3")).isEmpty();
  }

  @Test
  void describe_tellsOfNumbersThatAreNotKnown() {
    assertThat(CudaStatus.describe(2)).startsWith("CUDA_ERROR_OUT_OF_MEMORY (2): ");
    for (CudaStatus status : CudaStatus.values()) {
      assertThat(status.meaning()).as("%s", status).isNotBlank();
      if (status != CudaStatus.UNKNOWN) {
        assertThat(CudaStatus.describe(status.code())).endsWith(": " + status.meaning());
      }
    }
    assertThat(CudaStatus.describe(54321))
        .isEqualTo("CUresult 54321: a status newer than this library");
  }

  @Test
  void compilerException_showsTheStartOfALongLog() {
    assertThat(new CompilerException("call()", 0, "too many", "")).hasMessage("call(): too many");
    String log = "x".repeat(4_000);
    assertThat(new CompilerException("call()", 6, "WRONG", log))
        .hasMessage("call(): WRONG (6)\n" + log);
    assertThat(new CompilerException("call()", 6, "WRONG", log + "yyy"))
        .hasMessage("call(): WRONG (6)\n" + log + "\n... (3 more characters in log())");
    CompilerException spaced = new CompilerException("call()", 6, "WRONG", "\n " + log + " \n\n");
    assertThat(spaced).hasMessage("call(): WRONG (6)\n" + log);
    assertThat(spaced.log()).isEqualTo("\n " + log + " \n\n");
    assertThat(new CompilerException("call()", 6, "WRONG", " \n")).hasMessage("call(): WRONG (6)");
  }

  @Test
  void compilerException_givesItsParts_alsoWithAnotherLog() {
    CompilerException failed = new CompilerException("call(1)", 6, "WRONG", "log");
    CompilerException other = failed.withLog("more");
    assertThat(other).hasCause(failed).hasMessage("call(1): WRONG (6)\nmore");
    for (CompilerException each : new CompilerException[] {failed, other}) {
      assertThat(each.call()).isEqualTo("call(1)");
      assertThat(each.code()).isEqualTo(6);
      assertThat(each.status()).isEqualTo("WRONG");
      assertThat(each.log()).isEqualTo(each == failed ? "log" : "more");
    }
  }
}
