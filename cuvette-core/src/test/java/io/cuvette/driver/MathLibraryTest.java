package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class MathLibraryTest {
  @Test
  void libraries_areCalledByTheirNames_andKnowTheirFiles() {
    for (MathLibrary library : MathLibrary.values()) {
      boolean blas = library == MathLibrary.CUBLAS;
      OptionalLibrary file = blas ? OptionalLibrary.CUBLAS : OptionalLibrary.CUSOLVER;
      assertThat(library.title()).startsWith(blas ? "cuBLAS" : "cuSOLVER (");
      assertThat(library).hasToString(library.title());
      assertThat(library.file()).isSameAs(file);
      assertThat(library.takesWorkspace()).isEqualTo(blas);
    }
  }
}
