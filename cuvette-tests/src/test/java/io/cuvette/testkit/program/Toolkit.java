package io.cuvette.testkit.program;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.CompilerOptions;
import io.cuvette.CudaProgram;
import io.cuvette.ProgramCache;
import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.LinkerCalls;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/** The compiler and the linker of the machine; tests are skipped where they are not. */
final class Toolkit {
  private Toolkit() {}

  /** Skips a test where NVRTC is not. */
  static void needsCompiler() {
    try {
      int _ = CompilerCalls.find().orElseThrow().version();
    } catch (UnsupportedOperationException e) {
      assumeTrue(false, e.getMessage());
    }
  }

  /** Skips a test where nvJitLink is not. */
  static void needsLinker() {
    try {
      int _ = LinkerCalls.find().orElseThrow().version();
    } catch (UnsupportedOperationException e) {
      assumeTrue(false, e.getMessage());
    }
  }

  /** Options with the folders of CUDA's headers; a test is skipped where they are not. */
  static CompilerOptions withHeaders(CompilerOptions options) {
    try {
      return options.withCudaHeaders();
    } catch (UnsupportedOperationException e) {
      assumeTrue(false, e.getMessage());
      throw new AssertionError(e);
    }
  }

  /** The program of samples.cu, which is kept nowhere. */
  static CudaProgram samples(CompilerOptions options) {
    try (InputStream text = Toolkit.class.getResourceAsStream("samples.cu")) {
      String source =
          new String(
              Objects.requireNonNull(text, "samples.cu").readAllBytes(), StandardCharsets.UTF_8);
      return new CudaProgram(source, "samples.cu", withHeaders(options), ProgramCache.none());
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
