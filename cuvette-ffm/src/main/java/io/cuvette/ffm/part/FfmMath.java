package io.cuvette.ffm.part;

import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Calls about handles of cuBLAS and cuSOLVER, which take the context that is current. Thread-safe.
 */
public final class FfmMath extends Part implements MathCalls {
  /** The bytes for a factor: a complex double. */
  private static final long FACTOR = 16;

  private static final long ZERO = 0;
  private static final long FLOAT_ONE = FACTOR;
  private static final long DOUBLE_ONE = 2 * FACTOR;

  /** CUBLAS_GEMM_DEFAULT. */
  private static final int ANY_ALGORITHM = -1;

  private static final MemorySegment FACTORS = factors();

  /** libraryPropertyType: MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL. */
  private static final int PROPERTIES = 3;

  /** The part of the driver whose calls start here. */
  public FfmMath(Entry entry) {
    super(entry);
  }

  @Override
  public String mathLibraryVersion(MathLibrary library) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle get = binding.property();
    StringBuilder version = new StringBuilder();
    for (int property = 0; property < PROPERTIES; property++) {
      int which = property;
      long value =
          run(
              binding,
              () -> "getProperty(type=" + which + ")",
              frame -> (int) get.invokeExact(which, frame.out),
              enter());
      version.append(version.isEmpty() ? "" : ".").append((int) value);
    }
    return version.toString();
  }

  @Override
  public long mathHandleCreate(MathLibrary library, int device) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle create = binding.create();
    return run(
        binding,
        () -> "create(device=" + device + ")",
        frame -> (int) create.invokeExact(frame.out),
        enter(device));
  }

  @Override
  public void mathHandleDestroy(MathLibrary library, int device, long handle) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle destroy = binding.destroy();
    free(
        binding,
        () -> "destroy(handle=0x%x, device=%d)".formatted(handle, device),
        _ -> (int) destroy.invokeExact(handle),
        entry.enterToFree(device));
  }

  private static void free(
      MathBinding binding,
      Supplier<String> call,
      Call.Function function,
      @Nullable CallFrame frame) {
    if (frame != null) {
      run(binding, call, function, frame);
    }
  }

  @Override
  public void mathHandleSetStream(MathLibrary library, int device, long handle, long stream) {
    MathBinding binding = MathBinding.of(library);
    MethodHandle set = binding.setStream();
    run(
        binding,
        () -> "setStream(handle=0x%x, stream=0x%x, device=%d)".formatted(handle, stream, device),
        _ -> (int) set.invokeExact(handle, stream),
        enter(device));
  }

  @Override
  public void mathHandleSetWorkspace(int device, long handle, long address, long bytes) {
    MathBinding binding = MathBinding.of(MathLibrary.CUBLAS);
    MethodHandle set = binding.setWorkspace();
    run(
        binding,
        () ->
            "setWorkspace(handle=0x%x, address=0x%x, bytes=%d, device=%d)"
                .formatted(handle, address, bytes, device),
        _ -> (int) set.invokeExact(handle, address, bytes),
        enter(device));
  }

  @Override
  public void gemm(int device, long handle, MatrixProduct product, long c, long a, long b) {
    MathBinding binding = MathBinding.of(MathLibrary.CUBLAS);
    run(
        binding,
        () ->
            "gemm(handle=0x%x, %s, c=0x%x, a=0x%x, b=0x%x, device=%d)"
                .formatted(handle, product, c, a, b, device),
        product.batch() == 1
            ? single(binding.gemm(), handle, product, c, a, b)
            : batched(binding.gemmBatched(), handle, product, c, a, b),
        enter(device));
  }

  /** cublasGemmEx. */
  private static Call.Function single(
      MethodHandle gemm, long handle, MatrixProduct product, long c, long a, long b) {
    int code = product.type().code();
    return _ ->
        (int)
            gemm.invokeExact(
                handle,
                transposed(product.a()),
                transposed(product.b()),
                product.rows(),
                product.columns(),
                product.inner(),
                one(product.type()),
                a,
                code,
                product.a().leading(),
                b,
                code,
                product.b().leading(),
                FACTORS.address() + ZERO,
                c,
                code,
                product.c().leading(),
                product.type().computeCode(),
                ANY_ALGORITHM);
  }

  /** cublasGemmStridedBatchedEx. */
  private static Call.Function batched(
      MethodHandle gemm, long handle, MatrixProduct product, long c, long a, long b) {
    int code = product.type().code();
    return _ ->
        (int)
            gemm.invokeExact(
                handle,
                transposed(product.a()),
                transposed(product.b()),
                product.rows(),
                product.columns(),
                product.inner(),
                one(product.type()),
                a,
                code,
                product.a().leading(),
                product.a().stride(),
                b,
                code,
                product.b().leading(),
                product.b().stride(),
                FACTORS.address() + ZERO,
                c,
                code,
                product.c().leading(),
                product.c().stride(),
                product.batch(),
                product.type().computeCode(),
                ANY_ALGORITHM);
  }

  private static int transposed(MatrixProduct.Operand matrix) {
    return matrix.transposed() ? 1 : 0;
  }

  private static long one(MatrixType type) {
    return FACTORS.address() + (isDouble(type) ? DOUBLE_ONE : FLOAT_ONE);
  }

  private static boolean isDouble(MatrixType type) {
    return type == MatrixType.DOUBLE || type == MatrixType.COMPLEX_DOUBLE;
  }

  /** The factors 1 and 0, as complex numbers: their first parts are those of real types. */
  private static MemorySegment factors() {
    MemorySegment factors = Arena.global().allocate(3 * FACTOR, FACTOR);
    factors.set(ValueLayout.JAVA_FLOAT, FLOAT_ONE, 1);
    factors.set(ValueLayout.JAVA_DOUBLE, DOUBLE_ONE, 1);
    return factors;
  }

  private static long run(
      MathBinding binding, Supplier<String> call, Call.Function function, CallFrame frame) {
    int status;
    try {
      status = function.invoke(frame);
    } catch (Throwable e) { // what invokeExact declares
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw binding.failed(status, binding.library() + " " + call.get());
    }
    return result;
  }
}
