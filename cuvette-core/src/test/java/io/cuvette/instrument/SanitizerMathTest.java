package io.cuvette.instrument;

import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixProduct.Operand;
import io.cuvette.driver.MatrixType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What products of matrices do with their memory, in the stream of their handle. */
class SanitizerMathTest extends SanitizerTestBase {
  private static final Operand WHOLE = new Operand(false, 8, 0);
  private static final Operand WITH_GAPS = new Operand(false, 9, 0);

  private final long mine = stream();
  private final long other = stream();
  private final long a = memory();
  private final long b = memory();
  private final long c = memory();
  private final long handle = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);

  @BeforeEach
  void write() {
    for (long matrix : new long[] {a, b, c}) {
      write(matrix, mine);
    }
    driver.math().mathHandleSetStream(MathLibrary.CUBLAS, 0, handle, mine);
    driver.devices().ctxSynchronize(0);
  }

  private void multiply(Operand of) {
    driver
        .math()
        .gemm(0, handle, new MatrixProduct(MatrixType.FLOAT, 8, 8, 8, of, of, of, 1), c, a, b);
  }

  /** A kernel that is given a matrix, of which nobody knows whether it writes. */
  private void use(long matrix) {
    long library = driver.kernels().libraryLoadData(new byte[1]);
    long kernel = driver.kernels().libraryGetKernel(library, "any");
    MemorySegment values = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
    values.set(ValueLayout.JAVA_LONG, 0, matrix);
    driver
        .kernels()
        .launchKernel(
            0,
            other,
            kernel,
            new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false),
            new LaunchParameters(values, List.of(new KernelParameter(0, Long.BYTES))));
  }

  private void assertRaceOfEach(long... matrices) {
    assertSilent();
    for (long matrix : matrices) {
      write(matrix, other);
      assertOnly(Misuse.RACE);
      reports.clear();
    }
    driver.devices().ctxSynchronize(0);
  }

  @Test
  void factors_areRead_andTheProductIsWritten() {
    multiply(WHOLE);
    read(a, other);
    read(b, other);
    assertRaceOfEach(a, b, c);
    multiply(WHOLE);
    read(c, other);
    assertOnly(Misuse.RACE);
  }

  /** A kernel beside it may write, but does so in any case to bytes that are written here. */
  @Test
  void productWithoutGaps_isWritten_asNoKernelMayMeanwhile() {
    multiply(WHOLE);
    use(c);
    assertOnly(Misuse.RACE);
  }

  @Test
  void matricesWithGaps_areUsed_asByAKernel() {
    multiply(WITH_GAPS);
    use(a);
    use(b);
    use(c);
    assertRaceOfEach(a, b, c);
    for (long matrix : new long[] {a, b, c}) {
      multiply(WITH_GAPS);
      read(matrix, other);
      assertOnly(Misuse.RACE);
      reports.clear();
      driver.devices().ctxSynchronize(0);
    }
  }

  @Test
  void factorsThatNobodyWrote_areUnwrittenBehindAProductToo() {
    long unwritten = memory();
    MatrixProduct product = new MatrixProduct(MatrixType.FLOAT, 8, 8, 8, WHOLE, WHOLE, WHOLE, 1);
    driver.math().gemm(0, handle, product, c, unwritten, unwritten);
    assertSilent();
    MemorySegment target = HOST.asSlice(0, product.bytesOfA());
    driver.transfers().memcpyDtoHAsync(0, target, unwritten, mine);
    assertOnly(Misuse.UNINITIALIZED_READ);
  }
}
