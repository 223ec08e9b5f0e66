package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Calls about handles of cuBLAS and cuSOLVER: every argument reaches the library, every status
 * comes back, and the thread is left as it was. The libraries are ours.
 */
@SuppressWarnings("restricted")
class MathHandlesTest extends StubDriverTest {
  private static final long HANDLE = 0x7654_3210_ff08L;
  private static final long OTHERS = 0xeee;

  private final Map<MathLibrary, SymbolLookup> libraries = new LinkedHashMap<>();
  private Path log;
  private MathCalls math;

  @BeforeAll
  void bind(@TempDir Path folder) throws Exception {
    log = folder.resolve("log");
    Path source = folder.resolve("stub_math.c");
    try (InputStream text = MathHandlesTest.class.getResourceAsStream("stub_math.c")) {
      Files.write(source, text.readAllBytes());
    }
    String note = "-DLOG=\"" + log + "\"";
    Path blas =
        CCompiler.compile(source, folder.resolve("libblas.so"), "-shared", "-fPIC", "-DBLAS", note);
    Path solver =
        CCompiler.compile(source, folder.resolve("libsolver.so"), "-shared", "-fPIC", note);
    for (MathLibrary each : MathLibrary.values()) {
      Path file = each == MathLibrary.CUBLAS ? blas : solver;
      libraries.put(each, SymbolLookup.libraryLookup(file, Arena.global()));
      load(each, libraries.get(each));
    }
    math = driver.math();
  }

  /** As if it had been found. */
  @SuppressWarnings("unchecked")
  private void load(MathLibrary library, SymbolLookup symbols) throws Exception {
    Class<?> type = driver.getClass().getClassLoader().loadClass("io.cuvette.ffm.part.MathBinding");
    Method bind = type.getDeclaredMethod("bind", MathLibrary.class, SymbolLookup.class);
    bind.setAccessible(true);
    Field loaded = type.getDeclaredField("LOADED");
    loaded.setAccessible(true);
    ((Map<MathLibrary, Object>) loaded.get(null)).put(library, bind.invoke(null, library, symbols));
  }

  @BeforeEach
  void prepare() throws Exception {
    Files.deleteIfExists(log);
    libraries.keySet().forEach(library -> status(library, 0));
    library.makeCurrent(OTHERS);
  }

  private void status(MathLibrary library, int status) {
    libraries
        .get(library)
        .find("stub_status")
        .orElseThrow()
        .reinterpret(Integer.BYTES)
        .set(ValueLayout.JAVA_INT, 0, status);
  }

  private List<String> told() throws Exception {
    List<String> lines = Files.readAllLines(log);
    Files.delete(log);
    return lines;
  }

  /**
   * In a call the context of its device was current, and nothing could be forbidden by captures.
   */
  private void ranIn(String context) {
    assertThat(library.calls())
        .containsExactly(
            "cuCtxSetCurrent@4000(" + context + ") in eee",
            "cuCtxSetCurrent@4000(eee) in " + context);
    library.reset();
  }

  private static String name(MathLibrary library, String function) {
    return switch (library) {
      case CUBLAS -> "cublas" + function + "_v2";
      case CUSOLVER_DN -> "cusolverDn" + function;
      case CUSOLVER_SP -> "cusolverSp" + function;
    };
  }

  @Test
  void eachCall_reachesItsLibrary_inTheContextOfItsDevice() throws Exception {
    for (MathLibrary each : MathLibrary.values()) {
      boolean blas = each == MathLibrary.CUBLAS;
      assertThat(math.mathLibraryVersion(each)).isEqualTo(blas ? "13.14.15" : "12.11.10");
      String get = blas ? "cublasGetProperty " : "cusolverGetProperty ";
      assertThat(told()).containsExactly(get + "0 0 0", get + "1 0 0", get + "2 0 0");
      assertThat(library.calls()).isEmpty();
      assertThat(math.mathHandleCreate(each, 0)).isBetween(0x100L, 0x200L);
      ranIn("c000");
      assertThat(math.mathHandleCreate(each, 1)).isBetween(0x101L, 0x200L);
      ranIn("c001");
      math.mathHandleSetStream(each, 0, HANDLE, 1L << 41);
      ranIn("c000");
      math.mathHandleDestroy(each, 1, HANDLE);
      ranIn("c001");
      assertThat(told())
          .containsExactly(
              name(each, "Create") + " 0 0 0",
              name(each, "Create") + " 0 0 0",
              name(each, "SetStream") + " 76543210ff08 20000000000 0",
              name(each, "Destroy") + " 76543210ff08 0 0");
    }
    math.mathHandleSetWorkspace(0, HANDLE, 1L << 40, (1L << 33) + 7);
    ranIn("c000");
    assertThat(told()).containsExactly("cublasSetWorkspace_v2 76543210ff08 10000000000 8589934599");
  }

  @Test
  void products_haveEachArgumentInPlace() throws Exception {
    for (MatrixType type : MatrixType.values()) {
      for (int transposed = 0; transposed < 4; transposed++) {
        for (long batch : new long[] {1, 2, 5}) {
          MatrixProduct product =
              new MatrixProduct(
                  type,
                  3,
                  4,
                  5,
                  new MatrixProduct.Operand((transposed & 2) != 0, 1L << 33, 100),
                  new MatrixProduct.Operand((transposed & 1) != 0, 7, 0),
                  new MatrixProduct.Operand(false, 1L << 32, 1L << 36),
                  batch);
          math.gemm(1, HANDLE, product, 0xc00, 0xa00, 0xb00);
          ranIn("c001");
          assertThat(told()).containsExactly(line(product, transposed));
        }
      }
    }
  }

  private static String line(MatrixProduct product, int transposed) {
    int code =
        switch (product.type()) {
          case HALF -> 2;
          case BFLOAT16 -> 14;
          case FLOAT -> 0;
          case DOUBLE -> 1;
          case COMPLEX_FLOAT -> 4;
          case COMPLEX_DOUBLE -> 5;
        };
    boolean isDouble = code == 1 || code == 5;
    boolean single = product.batch() == 1;
    return "%s %d%d 3x4x5 1+0i a=a00:%d/8589934592 b=b00:%d/7 0+0i c=c00:%d/4294967296 %d -1%s"
        .formatted(
            single ? "cublasGemmEx_64" : "cublasGemmStridedBatchedEx_64",
            transposed / 2,
            transposed % 2,
            code,
            code,
            code,
            isDouble ? 70 : 68,
            single
                ? " 76543210ff08 0 0"
                : " strides 100 0 68719476736 76543210ff08 %x 0".formatted(product.batch()));
  }

  private static final MatrixProduct PRODUCT = product(1);

  private static MatrixProduct product(long batch) {
    MatrixProduct.Operand each = new MatrixProduct.Operand(false, 8, 64);
    return new MatrixProduct(MatrixType.FLOAT, 8, 8, 8, each, each, each, batch);
  }

  /** Calls by what their messages start with. */
  private Map<String, ThrowingCallable> calls(MathLibrary library) {
    Map<String, ThrowingCallable> calls = new LinkedHashMap<>();
    calls.put("getProperty(type=0)", () -> math.mathLibraryVersion(library));
    calls.put("create(device=1)", () -> math.mathHandleCreate(library, 1));
    calls.put("destroy(handle=0x5, device=1)", () -> math.mathHandleDestroy(library, 1, 5));
    calls.put(
        "setStream(handle=0x5, stream=0x6, device=1)",
        () -> math.mathHandleSetStream(library, 1, 5, 6));
    if (library.takesWorkspace()) {
      calls.put(
          "setWorkspace(handle=0x5, address=0x10, bytes=7, device=1)",
          () -> math.mathHandleSetWorkspace(1, 5, 16, 7));
      for (MatrixProduct product : List.of(PRODUCT, product(2))) {
        calls.put(
            "gemm(handle=0x5, " + product + ", c=0x1, a=0x2, b=0x3, device=1)",
            () -> math.gemm(1, 5, product, 1, 2, 3));
      }
    }
    return calls;
  }

  private static final Map<Integer, String> BLAS_NAMES =
      Map.of(
          1, "NOT_INITIALIZED",
          3, "ALLOC_FAILED",
          7, "INVALID_VALUE",
          8, "ARCH_MISMATCH",
          11, "MAPPING_ERROR",
          13, "EXECUTION_FAILED",
          14, "INTERNAL_ERROR",
          15, "NOT_SUPPORTED",
          16, "LICENSE_ERROR");

  private static final Map<Integer, String> SOLVER_NAMES =
      Map.of(
          1, "NOT_INITIALIZED",
          2, "ALLOC_FAILED",
          3, "INVALID_VALUE",
          4, "ARCH_MISMATCH",
          5, "MAPPING_ERROR",
          6, "EXECUTION_FAILED",
          7, "INTERNAL_ERROR",
          8, "MATRIX_TYPE_NOT_SUPPORTED",
          9, "NOT_SUPPORTED");

  private static final Map<String, CudaStatus> MEANT =
      Map.of(
          "NOT_INITIALIZED", CudaStatus.NOT_INITIALIZED,
          "ALLOC_FAILED", CudaStatus.OUT_OF_MEMORY,
          "INVALID_VALUE", CudaStatus.INVALID_VALUE,
          "ARCH_MISMATCH", CudaStatus.NO_BINARY_FOR_GPU,
          "NOT_SUPPORTED", CudaStatus.NOT_SUPPORTED);

  @Test
  void eachStatusOfEachCall_isAFailureThatNamesIt() {
    for (MathLibrary each : MathLibrary.values()) {
      boolean blas = each == MathLibrary.CUBLAS;
      for (int status = -1; status < 20; status++) {
        if (status == 0) {
          continue;
        }
        status(each, status);
        String name = (blas ? BLAS_NAMES : SOLVER_NAMES).getOrDefault(status, "UNKNOWN");
        CudaStatus meant = MEANT.getOrDefault(name, CudaStatus.UNKNOWN);
        String end = "%s_STATUS_%s (%d)".formatted(blas ? "CUBLAS" : "CUSOLVER", name, status);
        calls(each)
            .forEach((text, call) -> {
              assertThatThrownBy(call)
                  .as(text)
                  .isInstanceOfSatisfying(
                      CudaException.class, e -> assertThat(e.status()).isEqualTo(meant))
                  .hasMessageStartingWith(each + " " + text + ": ")
                  .hasMessageEndingWith(": " + end);
              assertThat(library.current()).isEqualTo(OTHERS);
              assertThat(library.mode()).isZero();
            });
      }
    }
  }

  @Test
  void functionThatALibraryLacks_isNamedByTheCallsThatNeedIt() throws Exception {
    load(MathLibrary.CUBLAS, libraries.get(MathLibrary.CUSOLVER_DN));
    try {
      calls(MathLibrary.CUBLAS)
          .values()
          .forEach(call -> {
            assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                    CudaException.class,
                    e ->
                        assertThat(e.status()).isEqualTo(CudaStatus.SHARED_OBJECT_SYMBOL_NOT_FOUND))
                .hasMessageStartingWith("dlsym(cublas");
            assertThat(library.current()).isEqualTo(OTHERS);
          });
    } finally {
      load(MathLibrary.CUBLAS, libraries.get(MathLibrary.CUBLAS));
    }
  }
}
