package io.cuvette.ffm;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;

/** Makes one call of each kind about handles of libraries, and prints what came of it. */
final class MathMain {
  private MathMain() {}

  /** Prints versions and handles, and errors with their status. */
  public static void main(String[] arguments) {
    CudaDriver driver = new FfmDriverProvider().open("");
    try {
      for (MathLibrary library : MathLibrary.values()) {
        print(() -> System.out.println(use(driver.math(), library)));
      }
    } finally {
      driver.close();
    }
    print(() -> driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0));
  }

  private static String use(MathCalls math, MathLibrary library) {
    String version = math.mathLibraryVersion(library);
    long handle = math.mathHandleCreate(library, 0);
    math.mathHandleSetStream(library, 0, handle, 0x77);
    if (library.takesWorkspace()) {
      math.mathHandleSetWorkspace(0, handle, 0x7654_3210_ff00L, 1L << 33);
      if (System.getenv("STUB_MATH_PRODUCTS")
          != null) { // a library that is installed would compute
        math.gemm(0, handle, product(MatrixType.BFLOAT16, 1), 0xc00, 0xa00, 0xb00);
        math.gemm(0, handle, product(MatrixType.COMPLEX_DOUBLE, 2), 0xc00, 0xa00, 0xb00);
      }
    }
    math.mathHandleDestroy(library, 0, handle);
    return "%s %s 0x%x".formatted(library, version, handle);
  }

  private static MatrixProduct product(MatrixType type, long batch) {
    return new MatrixProduct(
        type,
        3,
        4,
        5,
        new MatrixProduct.Operand(true, 6, 100),
        new MatrixProduct.Operand(false, 7, 0),
        new MatrixProduct.Operand(false, 1L << 32, 1L << 36),
        batch);
  }

  private static void print(Runnable call) {
    try {
      call.run();
    } catch (CudaException e) {
      System.out.println(e.status() + " " + e.getMessage());
    } catch (IllegalStateException e) {
      System.out.println(e.getMessage());
    }
  }
}
