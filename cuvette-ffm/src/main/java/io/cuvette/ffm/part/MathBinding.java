package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathLibrary;
import io.cuvette.ffm.link.NativeAccess;
import io.cuvette.ffm.link.SharedLibraries;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The functions of a library whose handles are lent. Each library is loaded when first used, and
 * stays; one that is missing is looked for again with the next use. Immutable.
 *
 * @param property writes a part of the version: cublasGetProperty and its like
 * @param create writes a new handle
 * @param setWorkspace that of cuBLAS; others have none, as of the next two
 * @param gemm multiplies two matrices
 * @param gemmBatched multiplies a batch of them
 */
record MathBinding(
    MathLibrary library,
    MethodHandle property,
    MethodHandle create,
    MethodHandle destroy,
    MethodHandle setStream,
    MethodHandle setWorkspace,
    MethodHandle gemm,
    MethodHandle gemmBatched) {

  private static final Map<MathLibrary, MathBinding> LOADED = new ConcurrentHashMap<>();

  /** The names of cuBLAS, and of both parts of cuSOLVER, as their headers map them. */
  private static final List<String> CUBLAS_NAMES =
      List.of(
          "cublasGetProperty",
          "cublasCreate_v2",
          "cublasDestroy_v2",
          "cublasSetStream_v2",
          "cublasSetWorkspace_v2",
          "cublasGemmEx_64",
          "cublasGemmStridedBatchedEx_64");

  /**
   * From the handle on; pointers to factors, matrices with type and distances, and how it is done.
   */
  private static final MemoryLayout[] GEMM = {
    POINTER, INT, INT, SIZE, SIZE, SIZE, POINTER, POINTER, INT, SIZE, POINTER, INT, SIZE, POINTER,
    POINTER, INT, SIZE, INT, INT
  };

  private static final MemoryLayout[] GEMM_BATCHED = {
    POINTER, INT, INT, SIZE, SIZE, SIZE, POINTER, POINTER, INT, SIZE, SIZE, POINTER, INT, SIZE,
    SIZE, POINTER, POINTER, INT, SIZE, SIZE, SIZE, INT, INT
  };

  /** The last ones are no functions of cuSOLVER, which takes a workspace with each call. */
  private static List<String> names(MathLibrary library) {
    if (library == MathLibrary.CUBLAS) {
      return CUBLAS_NAMES;
    }
    String part = library == MathLibrary.CUSOLVER_DN ? "cusolverDn" : "cusolverSp";
    return List.of(
        "cusolverGetProperty", part + "Create", part + "Destroy", part + "SetStream", "", "", "");
  }

  /**
   * The binding of a library.
   *
   * @throws CudaException if it is missing, cannot be loaded, or lacks a function
   */
  static MathBinding of(MathLibrary library) {
    MathBinding known = LOADED.get(library);
    if (known == null) {
      known = bind(library, load(library));
      LOADED.put(library, known);
    }
    return known;
  }

  private static SymbolLookup load(MathLibrary library) {
    Path file =
        library
            .file()
            .find()
            .orElseThrow(() ->
                new CudaException(
                    CudaStatus.FILE_NOT_FOUND,
                    "dlopen(" + library.file().file() + ")",
                    library.file().missing()));
    try {
      return NativeAccess.load(file.toString());
    } catch (IllegalArgumentException e) {
      throw new CudaException(
          CudaStatus.SHARED_OBJECT_INIT_FAILED,
          "dlopen(" + file + ")",
          "%s does not load: %s; install %s"
              .formatted(
                  library.file().title(),
                  SharedLibraries.loadError(file.toString()),
                  library.file().install()));
    }
  }

  private static MathBinding bind(MathLibrary library, SymbolLookup symbols) {
    List<String> names = names(library);
    return new MathBinding(
        library,
        function(symbols, names.get(0), INT, POINTER),
        function(symbols, names.get(1), POINTER),
        function(symbols, names.get(2), POINTER),
        function(symbols, names.get(3), POINTER, POINTER),
        function(symbols, names.get(4), POINTER, POINTER, SIZE),
        function(symbols, names.get(5), GEMM),
        function(symbols, names.get(6), GEMM_BATCHED));
  }

  private static MethodHandle function(
      SymbolLookup symbols, String name, MemoryLayout... parameters) {
    FunctionDescriptor type = FunctionDescriptor.of(INT, parameters);
    MemorySegment address = name.isEmpty() ? null : symbols.find(name).orElse(null);
    return address == null
        ? NativeAccess.missing(
            type.toMethodType(),
            () ->
                new CudaException(
                    CudaStatus.SHARED_OBJECT_SYMBOL_NOT_FOUND,
                    "dlsym(" + name + ")",
                    "the library has no such function"))
        : NativeAccess.function(address, type);
  }

  /** What a call that failed is thrown as. */
  CudaException failed(int status, String call) {
    boolean cublas = library == MathLibrary.CUBLAS;
    String name = cublas ? cublasName(status) : cusolverName(status);
    CudaStatus as =
        switch (name) {
          case "ALLOC_FAILED" -> CudaStatus.OUT_OF_MEMORY;
          case "INVALID_VALUE" -> CudaStatus.INVALID_VALUE;
          case "NOT_INITIALIZED" -> CudaStatus.NOT_INITIALIZED;
          case "ARCH_MISMATCH" -> CudaStatus.NO_BINARY_FOR_GPU;
          case "NOT_SUPPORTED" -> CudaStatus.NOT_SUPPORTED;
          default -> CudaStatus.UNKNOWN;
        };
    return new CudaException(
        as, call, "%s_STATUS_%s (%d)".formatted(cublas ? "CUBLAS" : "CUSOLVER", name, status));
  }

  private static String cublasName(int status) {
    return switch (status) {
      case 1 -> "NOT_INITIALIZED";
      case 3 -> "ALLOC_FAILED";
      case 7 -> "INVALID_VALUE";
      case 8 -> "ARCH_MISMATCH";
      case 11 -> "MAPPING_ERROR";
      case 13 -> "EXECUTION_FAILED";
      case 14 -> "INTERNAL_ERROR";
      case 15 -> "NOT_SUPPORTED";
      case 16 -> "LICENSE_ERROR";
      default -> "UNKNOWN";
    };
  }

  private static String cusolverName(int status) {
    return switch (status) {
      case 1 -> "NOT_INITIALIZED";
      case 2 -> "ALLOC_FAILED";
      case 3 -> "INVALID_VALUE";
      case 4 -> "ARCH_MISMATCH";
      case 5 -> "MAPPING_ERROR";
      case 6 -> "EXECUTION_FAILED";
      case 7 -> "INTERNAL_ERROR";
      case 8 -> "MATRIX_TYPE_NOT_SUPPORTED";
      case 9 -> "NOT_SUPPORTED";
      default -> "UNKNOWN";
    };
  }
}
