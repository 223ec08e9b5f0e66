package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Calls about handles reach the functions of cuBLAS and cuSOLVER with each argument in place; the
 * libraries are ours, and found where the loader looks. Skipped without a C compiler.
 */
class FfmMathCallsTest {
  @TempDir private Path folder;

  private Path log() {
    return folder.resolve("log");
  }

  private Path source() throws IOException {
    try (InputStream text = FfmMathCallsTest.class.getResourceAsStream("stub_math.c")) {
      return Files.write(folder.resolve("stub_math.c"), text.readAllBytes());
    }
  }

  private void compileLibraries() throws Exception {
    CCompiler.compile(source(), folder.resolve("libcublas.so.99"), "-shared", "-fPIC", "-DBLAS");
    CCompiler.compile(source(), folder.resolve("libcusolver.so.99"), "-shared", "-fPIC");
  }

  private String run(Map<String, String> more) throws Exception {
    Map<String, String> environment = new HashMap<>(more);
    environment.put("LD_LIBRARY_PATH", folder.toString());
    environment.put("STUB_MATH_LOG", log().toString());
    Path driver = Standin.compile(Files.createDirectory(folder.resolve("driver")));
    ForkedJvm.Result result =
        ForkedJvm.run(MathMain.class, environment, "-Dcuvette.libcuda=" + driver);
    assertThat(result.exitCode()).as(result.output()).isZero();
    return result.output();
  }

  @Test
  void handles_areMadeBoundAndDestroyed() throws Exception {
    compileLibraries();
    assertThat(run(Map.of("STUB_MATH_PRODUCTS", "1")).lines())
        .containsExactly(
            "cuBLAS 13.14.15 0x100",
            "cuSOLVER (dense) 12.11.10 0x100",
            "cuSOLVER (sparse) 12.11.10 0x101",
            "driver ffm is closed");
    assertThat(Files.readAllLines(log()))
        .containsExactly(
            "cublasGetProperty 0 0 0",
            "cublasGetProperty 1 0 0",
            "cublasGetProperty 2 0 0",
            "cublasCreate_v2 0 0 0",
            "cublasSetStream_v2 100 77 0",
            "cublasSetWorkspace_v2 100 76543210ff00 8589934592",
            "cublasGemmEx_64 10 3x4x5 1+0i a=a00:14/6 b=b00:14/7 0+0i c=c00:14/4294967296"
                + " 68 -1 100 0 0",
            "cublasGemmStridedBatchedEx_64 10 3x4x5 1+0i a=a00:5/6 b=b00:5/7 0+0i"
                + " c=c00:5/4294967296 70 -1 strides 100 0 68719476736 100 2 0",
            "cublasDestroy_v2 100 0 0",
            "cusolverGetProperty 0 0 0",
            "cusolverGetProperty 1 0 0",
            "cusolverGetProperty 2 0 0",
            "cusolverDnCreate 0 0 0",
            "cusolverDnSetStream 100 77 0",
            "cusolverDnDestroy 100 0 0",
            "cusolverGetProperty 0 0 0",
            "cusolverGetProperty 1 0 0",
            "cusolverGetProperty 2 0 0",
            "cusolverSpCreate 0 0 0",
            "cusolverSpSetStream 101 77 0",
            "cusolverSpDestroy 101 0 0");
  }

  @Test
  void errors_haveTheNameOfTheLibrary() throws Exception {
    compileLibraries();
    assertThat(run(Map.of("STUB_MATH_STATUS", "7")).lines())
        .containsExactly(
            "INVALID_VALUE cuBLAS getProperty(type=0): CUDA_ERROR_INVALID_VALUE (1): an argument is"
                + " out of its range: CUBLAS_STATUS_INVALID_VALUE (7)",
            "UNKNOWN cuSOLVER (dense) getProperty(type=0): CUDA_ERROR_UNKNOWN (999): unknown error:"
                + " CUSOLVER_STATUS_INTERNAL_ERROR (7)",
            "UNKNOWN cuSOLVER (sparse) getProperty(type=0): CUDA_ERROR_UNKNOWN (999): unknown"
                + " error: CUSOLVER_STATUS_INTERNAL_ERROR (7)",
            "driver ffm is closed");
  }

  @Test
  void libraryThatIsMissing_isOneError_withWhereItWasLookedFor_andWhatToInstall() throws Exception {
    String lines = run(Map.of());
    assumeTrue(lines.contains("FILE_NOT_FOUND"), "the libraries are installed");
    assertThat(lines.lines())
        .anySatisfy(line ->
            assertThat(line)
                .startsWith("FILE_NOT_FOUND dlopen(libcublas.so): ")
                .contains("cuBLAS is missing: no file libcublas.so* in " + folder)
                .endsWith("; install libcublas of the CUDA toolkit, or pip install nvidia-cublas"))
        .anySatisfy(line -> assertThat(line).startsWith("FILE_NOT_FOUND dlopen(libcusolver.so): "));
  }

  @Test
  void fileThatIsNoLibrary_isOneError() throws Exception {
    Files.writeString(folder.resolve("libcublas.so.12"), "nothing");
    assertThat(run(Map.of("STUB_MATH_PRODUCTS", "1")).lines())
        .anySatisfy(line ->
            assertThat(line)
                .startsWith("SHARED_OBJECT_INIT_FAILED dlopen(" + folder)
                .contains("cuBLAS does not load: ", "file too short", "install libcublas"));
  }
}
