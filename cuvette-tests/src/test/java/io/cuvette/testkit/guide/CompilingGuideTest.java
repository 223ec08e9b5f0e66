package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.CompilerOptions;
import io.cuvette.CudaLinker;
import io.cuvette.CudaProgram;
import io.cuvette.KernelCode;
import io.cuvette.LinkerOptions;
import io.cuvette.ProgramCache;
import io.cuvette.driver.OptionalLibrary;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The programs of docs/guide/compiling.md; skipped where the libraries are not. */
class CompilingGuideTest {
  private static final String SETTING = "cuvette.cache";

  /** Tests leave nothing in the user's own cache. */
  @BeforeEach
  void setCache(@TempDir Path folder) {
    System.setProperty(SETTING, folder.resolve("cache").toString());
  }

  @AfterEach
  void clearCache() {
    System.clearProperty(SETTING);
  }

  private static void needs(OptionalLibrary library, String property) {
    assumeTrue(
        library.find().isPresent() || System.getProperty(property) != null, library.missing());
  }

  @Test
  void program_isCompiled(@TempDir Path folder) {
    needs(OptionalLibrary.NVRTC, "cuvette.nvrtc");
    CudaProgram program =
        CudaProgram.of(
                """
                template <class T> __global__ void scale(T* values, T by, int n) {
                  int i = blockIdx.x * blockDim.x + threadIdx.x;
                  if (i < n) values[i] *= by;
                }
                """)
            .withName("scale.cu")
            .withOptions(
                CompilerOptions.DEFAULTS
                    .withArchitecture("sm_90") // or a device's computeCapability()
                    .withStandard("c++20")
                    .withDefine("UNROLL", "4")
                    .withNameExpression("scale<float>"));
    KernelCode code = program.compile(KernelCode.Kind.PTX);
    assertThat(code.text()).contains(code.loweredName("scale<float>"));
    CudaProgram elsewhere =
        program.withCache(ProgramCache.in(folder.resolve("kernels")).withLimit(64L << 20));
    CudaProgram always = program.withCache(ProgramCache.none());
    assertThat(elsewhere.compile(KernelCode.Kind.PTX)).isEqualTo(code);
    assertThat(always.compile(KernelCode.Kind.PTX)).isEqualTo(code);
    assertThat(folder.resolve("kernels")).isNotEmptyDirectory();
  }

  @Test
  void codeCompiledApart_isLinked() {
    needs(OptionalLibrary.NVRTC, "cuvette.nvrtc");
    needs(OptionalLibrary.NVJITLINK, "cuvette.nvjitlink");
    CompilerOptions apart =
        CompilerOptions.DEFAULTS.withArchitecture("sm_90").withRelocatableCode(true);
    KernelCode caller =
        CudaProgram.of(
                "extern __device__ int twice(int);"
                    + " extern \"C\" __global__ void call(int* x) { *x = twice(*x); }")
            .withOptions(apart)
            .compile(KernelCode.Kind.LTOIR);
    KernelCode called =
        CudaProgram.of("__device__ int twice(int x) { return x * 2; }")
            .withOptions(apart)
            .compile(KernelCode.Kind.LTOIR);
    KernelCode linked =
        new CudaLinker(LinkerOptions.of("sm_90"))
            .link(KernelCode.Kind.CUBIN, List.of(caller, called));
    assertThat(KernelCode.of(linked.bytes()).kind()).isEqualTo(KernelCode.Kind.CUBIN);
  }
}
