package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixType;
import java.util.Random;

/**
 * What every driver promises about handles of libraries. Extend it in the tests of a driver. A
 * library that is missing is skipped, with where it was looked for.
 */
public abstract class DriverMathContract {
  private static final long WORKSPACE = 1 << 20;
  private static final int PRODUCTS = 20;

  /** For subclasses. */
  protected DriverMathContract() {}

  private static void assumeThere(CudaDriver driver, MathLibrary library) {
    try {
      assertThat(driver.math().mathLibraryVersion(library)).isNotBlank();
    } catch (CudaException e) {
      assumeTrue(e.status() != CudaStatus.FILE_NOT_FOUND, e.getMessage());
      throw e;
    }
  }

  private static void use(CudaDriver driver, MathLibrary library) {
    assumeThere(driver, library);
    MathCalls math = driver.math();
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long handle = math.mathHandleCreate(library, 0);
    long other = math.mathHandleCreate(library, 0);
    assertThat(handle).isNotZero().isNotEqualTo(other);
    math.mathHandleSetStream(library, 0, handle, stream);
    math.mathHandleSetStream(library, 0, handle, 0);
    math.mathHandleDestroy(library, 0, other);
    math.mathHandleDestroy(library, 0, handle);
    driver.streams().streamDestroy(0, stream);
  }

  /**
   * Handles of cuBLAS are made, bound to streams and destroyed.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void handlesOfCublas_areMadeBoundAndDestroyed(CudaDriver driver) {
    use(driver, MathLibrary.CUBLAS);
  }

  /**
   * Handles of cuSOLVER are made, bound to streams and destroyed.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void handlesOfCusolver_areMadeBoundAndDestroyed(CudaDriver driver) {
    use(driver, MathLibrary.CUSOLVER_DN);
    use(driver, MathLibrary.CUSOLVER_SP);
  }

  /**
   * cuBLAS takes a workspace whose address is a multiple of 256. Whether it refuses another depends
   * on its version.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void workspaceThatIsAligned_isTaken(CudaDriver driver) {
    assumeThere(driver, MathLibrary.CUBLAS);
    MathCalls math = driver.math();
    long memory = driver.memory().memAlloc(0, WORKSPACE);
    long handle = math.mathHandleCreate(MathLibrary.CUBLAS, 0);
    math.mathHandleSetWorkspace(0, handle, memory, WORKSPACE);
    math.mathHandleDestroy(MathLibrary.CUBLAS, 0, handle);
    driver.memory().memFree(0, memory);
  }

  /**
   * There is no handle for a device that there is not.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void deviceThatThereIsNot_isRefused(CudaDriver driver) {
    assumeThere(driver, MathLibrary.CUBLAS);
    Refused.withAny(() -> driver.math().mathHandleCreate(MathLibrary.CUBLAS, 12_345));
    Refused.withAny(() -> driver.math().mathHandleCreate(MathLibrary.CUBLAS, -1));
  }

  /**
   * Products of matrices are those of a reference in double, of each type, transposed or not, in
   * batches and with gaps.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void products_areThoseOfAReference(CudaDriver driver) {
    assumeThere(driver, MathLibrary.CUBLAS);
    long handle = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);
    driver.math().mathHandleSetStream(MathLibrary.CUBLAS, 0, handle, 0);
    Random random = new Random(1);
    for (MatrixType type : MatrixType.values()) {
      for (int i = 0; i < PRODUCTS; i++) {
        new ProductCase(type, random).check(driver, handle);
      }
    }
    driver.math().mathHandleDestroy(MathLibrary.CUBLAS, 0, handle);
  }
}
