package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.kernel.Products;
import java.util.Objects;

/** Multiplies matrices in buffers by cuBLAS. Stateless. */
public final class MatrixProducts {
  private MatrixProducts() {}

  /**
   * Queues a product of matrices in the stream of a handle of cuBLAS (cublasGemmEx,
   * cublasGemmStridedBatchedEx). Sums are made in float for half and bfloat16. The buffers are kept
   * until that is done, as in a launch.
   *
   * @param cublas the handle, which is lent for the stream
   * @param product the sizes and the type, and how the matrices lie
   * @param c where the product goes; from its start on, as with the others
   * @param a the left matrix
   * @param b the right matrix
   * @throws IllegalArgumentException if it is a handle of another library, a buffer is too small,
   *     not aligned to the type or not in reach of the device, or C has bytes in common with
   *     another
   * @throws IllegalStateException if the handle, a buffer or the stream is closed
   * @throws CudaException if cuBLAS reports an error
   */
  public static void multiply(
      LibraryHandle cublas, MatrixProduct product, Buffer c, Buffer a, Buffer b) {
    Objects.requireNonNull(cublas, "cublas");
    Objects.requireNonNull(product, "product");
    Memory toC = memory("c", c);
    Memory ofA = memory("a", a);
    Memory ofB = memory("b", b);
    if (cublas.library() != MathLibrary.CUBLAS) {
      throw new IllegalArgumentException("%s (expected: a handle of cuBLAS)".formatted(cublas));
    }
    cublas.use(handle -> Products.queue(handle, product, toC, ofA, ofB));
  }

  private static Memory memory(String name, Buffer buffer) {
    return Objects.requireNonNull(BufferBase.memoryOf(buffer), name);
  }
}
