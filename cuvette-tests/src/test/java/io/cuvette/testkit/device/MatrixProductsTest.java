package io.cuvette.testkit.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.LibraryHandle;
import io.cuvette.MatrixProducts;
import io.cuvette.MemoryPool;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixProduct.Operand;
import io.cuvette.driver.MatrixType;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Graph;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.assertj.core.api.ThrowableAssertAlternative;
import org.junit.jupiter.api.Test;

/** Each wrong argument of a product of matrices is one clear error, before anything is queued. */
class MatrixProductsTest {
  private static final Operand PACKED = new Operand(false, 2, 4);

  /** Two by two. */
  private static final MatrixProduct PRODUCT =
      new MatrixProduct(MatrixType.FLOAT, 2, 2, 2, PACKED, PACKED, PACKED, 1);

  private static final long BYTES = 16;

  /** The buffers of a product. */
  private record Matrices(Buffer c, Buffer a, Buffer b) {}

  private static ThrowableAssertAlternative<IllegalArgumentException> refused(
      LibraryHandle handle, Matrices matrices) {
    return assertThatIllegalArgumentException()
        .isThrownBy(
            () -> MatrixProducts.multiply(handle, PRODUCT, matrices.c, matrices.a, matrices.b));
  }

  @CudaTest(simulatedOnly = true)
  void whatIsTooSmallMisalignedOrOverlaps_isRefused(
      Cuda cuda, CudaStream stream, ScriptedDriver driver) {
    try (LibraryHandle handle = cuda.device(0).useCublas(stream);
        Buffer all = cuda.allocate(4 * BYTES, stream)) {
      Buffer c = all.slice(0, BYTES);
      Buffer a = all.slice(BYTES, BYTES);
      Buffer b = all.slice(2 * BYTES, BYTES);
      refused(handle, new Matrices(c, a.slice(0, 15), b))
          .withMessageStartingWith("a: 15 bytes (expected: >= 16 for MatrixProduct[");
      refused(handle, new Matrices(c, a, b.slice(4, 12)))
          .withMessageStartingWith("b: 12 bytes (expected: >= 16 for ");
      refused(handle, new Matrices(c.slice(0, 0), a, b))
          .withMessageStartingWith("c: 0 bytes (expected: >= 16 for ");
      refused(handle, new Matrices(c, all.slice(18, BYTES), b))
          .withMessage("a: 0x%x (expected: a multiple of 4)", all.address() + 18);
      refused(handle, new Matrices(all.slice(12, BYTES), a, b))
          .withMessageStartingWith("c: ")
          .withMessageContaining(" and a: ")
          .withMessageEndingWith(" have bytes in common (expected: none)");
      refused(handle, new Matrices(c, a, all.slice(12, BYTES))).withMessageContaining(" and b: ");
      assertThat(driver.count("gemm")).isZero();
      MatrixProducts.multiply(handle, PRODUCT, c, a, a); // what is only read may be the same
      MatrixProducts.multiply(handle, PRODUCT, a, c, b); // side by side on both sides
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void whatIsOfAnotherOwner_isRefused(Cuda cuda, CudaStream stream, @OnDevice(1) CudaStream far) {
    CudaDevice device = cuda.device(0);
    try (LibraryHandle handle = device.useCublas(stream);
        Buffer own = cuda.allocate(3 * BYTES, stream);
        Buffer other = cuda.allocate(BYTES, far);
        Cuda another = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"));
        Buffer foreign = another.allocate(BYTES)) {
      Buffer c = own.slice(0, BYTES);
      Buffer a = own.slice(BYTES, BYTES);
      refused(handle, new Matrices(c, a, foreign))
          .withMessageStartingWith("b: ")
          .withMessageEndingWith(" belongs to another Cuda");
      refused(handle, new Matrices(c, other, a)).withMessageContaining("enablePeerAccess first");
      device.enablePeerAccess(cuda.device(1));
      MatrixProducts.multiply(handle, PRODUCT, c, other, a);
      Buffer closed = cuda.allocate(BYTES, stream);
      closed.close();
      assertThatIllegalStateException()
          .isThrownBy(() -> MatrixProducts.multiply(handle, PRODUCT, c, closed, a));
      stream.synchronize();
    }
  }

  @CudaTest(simulatedOnly = true)
  void handleOfAnotherLibrary_isRefused(Cuda cuda, CudaStream stream) {
    try (LibraryHandle handle = cuda.device(0).useLibrary(MathLibrary.CUSOLVER_DN, stream, 0);
        Buffer all = cuda.allocate(3 * BYTES, stream)) {
      Buffer a = all.slice(BYTES, BYTES);
      refused(handle, new Matrices(all.slice(0, BYTES), a, a))
          .withMessageEndingWith("(expected: a handle of cuBLAS)");
    }
  }

  @CudaTest(simulatedOnly = true)
  void closedHandle_isRefused_andOthersMayHaveIt(Cuda cuda, CudaStream stream) {
    CudaDevice device = cuda.device(0);
    LibraryHandle closed = device.useCublas(stream);
    closed.close();
    try (LibraryHandle _ = device.useCublas(stream);
        Buffer all = cuda.allocate(3 * BYTES, stream)) {
      Buffer c = all.slice(0, BYTES);
      Buffer a = all.slice(BYTES, BYTES);
      assertThatIllegalStateException()
          .isThrownBy(() -> MatrixProducts.multiply(closed, PRODUCT, c, a, a))
          .withMessageContaining("is closed");
    }
  }

  private static ThrowableAssertAlternative<IllegalArgumentException> refused(
      long rows, long inner, Operand a, Operand c, long batch) {
    return assertThatIllegalArgumentException()
        .isThrownBy(() -> new MatrixProduct(MatrixType.FLOAT, rows, 2, inner, a, PACKED, c, batch));
  }

  @Test
  void sizesThatDoNotFit_areRefused() {
    refused(0, 2, PACKED, PACKED, 1).withMessage("rows: 0 (expected: >= 1)");
    refused(2, -1, PACKED, PACKED, 1).withMessage("inner: -1 (expected: >= 1)");
    refused(2, 2, PACKED, PACKED, 0).withMessage("batch: 0 (expected: >= 1)");
    refused(2, 2, new Operand(false, 1, 4), PACKED, 1).withMessage("a: leading 1 (expected: >= 2)");
    refused(2, 2, new Operand(true, 1, 4), PACKED, 1).withMessage("a: leading 1 (expected: >= 2)");
    refused(2, 2, PACKED, new Operand(false, 2, -1), 1)
        .withMessage("c: stride -1 (expected: >= 0)");
    refused(2, 2, PACKED, new Operand(true, 2, 4), 1)
        .withMessageEndingWith("(expected: not transposed, and matrices one behind the other)");
    refused(2, 2, PACKED, new Operand(false, 2, 3), 2)
        .withMessageEndingWith("(expected: not transposed, and matrices one behind the other)");
    refused(2, 2, new Operand(false, Long.MAX_VALUE / 16, 0), PACKED, 1)
        .withMessageStartingWith("a: ")
        .withMessageEndingWith(" of 2 x 2 (expected: at most 2^63-1 bytes)");
  }

  /** Closed buffers are those of their stream again, which knows nothing of the product's. */
  @CudaTest(simulatedOnly = true)
  void product_isQueuedOnce_andHoldsItsBuffersBackUntilItIsDone(
      Cuda cuda, MemoryPool pool, CudaStream own, CudaStream stream, ScriptedDriver driver) {
    driver.note(
        "gemm", call -> "%d %d %d".formatted(call.number("c"), call.number("a"), call.number("b")));
    Buffer c = pool.allocate(BYTES, own);
    Buffer a = pool.allocate(BYTES, own);
    Buffer b = pool.allocate(BYTES, own);
    own.synchronize();
    try (LibraryHandle handle = cuda.device(0).useCublas(stream)) {
      try (Gate _ = Gate.on(stream)) {
        MatrixProducts.multiply(handle, PRODUCT, c, a, b);
        assertThat(driver.takeNotes())
            .containsExactly("%d %d %d".formatted(c.address(), a.address(), b.address()));
        List.of(c, a, b).forEach(Buffer::close);
        assertThat(pool.stats().pendingBytes()).isEqualTo(3 * c.blockBytes());
        try (Buffer next = pool.allocate(BYTES, own)) {
          assertThat(List.of(c.address(), a.address(), b.address())).doesNotContain(next.address());
        }
      }
      stream.synchronize();
      assertThat(pool.stats().pendingBytes()).isZero();
    }
  }

  /** Also where it is too small, or of a device that has no access. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void closedMatrix_isSaidToBeClosed_whateverElseIsWrong(
      Cuda cuda, CudaStream stream, @OnDevice(1) CudaStream far) {
    Buffer small = cuda.allocate(1, stream);
    Buffer elsewhere = cuda.allocate(BYTES, far);
    small.close();
    elsewhere.close();
    try (LibraryHandle handle = cuda.device(0).useCublas(stream);
        Buffer all = cuda.allocate(3 * BYTES, stream)) {
      Buffer x = all.slice(0, BYTES);
      Buffer y = all.slice(BYTES, BYTES);
      for (Buffer closed : List.of(small, elsewhere)) {
        for (Matrices each :
            List.of(
                new Matrices(closed, x, y),
                new Matrices(x, closed, y),
                new Matrices(x, y, closed))) {
          assertThatIllegalStateException()
              .isThrownBy(() -> MatrixProducts.multiply(handle, PRODUCT, each.c, each.a, each.b))
              .withMessageEndingWith("is closed");
        }
      }
    }
  }

  /** Each launch reads and writes them. */
  @CudaTest(simulatedOnly = true)
  void capturedProduct_keepsItsBuffersAsLongAsItsGraph(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream own, @NonBlocking CudaStream stream) {
    Buffer c = pool.allocate(BYTES, own);
    Buffer a = pool.allocate(BYTES, own);
    Buffer b = pool.allocate(BYTES, own);
    List<Long> places = List.of(c.address(), a.address(), b.address());
    own.synchronize();
    try (LibraryHandle handle = cuda.device(0).useCublas(stream);
        CudaGraph graph = stream.capture(() -> MatrixProducts.multiply(handle, PRODUCT, c, a, b));
        CudaGraphExec executable = graph.instantiate()) {
      List.of(c, a, b).forEach(Buffer::close);
      for (int i = 0; i < 3; i++) {
        executable.launch(stream);
        stream.synchronize();
        try (Buffer next = pool.allocate(BYTES, own)) {
          assertThat(places).doesNotContain(next.address());
        }
      }
    }
    Graph.awaitGone(pool, own);
    try (Buffer next = pool.allocate(BYTES, own)) {
      assertThat(places).contains(next.address());
    }
  }

  /** Others may have the stream: right before the product one of them begins to capture it. */
  @CudaTest(simulatedOnly = true)
  void matricesOfAProduct_thatAnotherThreadCaptures_stayAsLongAsTheGraph(
      MemoryPool pool, @NonBlocking CudaStream stream, ScriptedDriver driver) {
    stream.capture(() -> {}).close();
    try (LibraryHandle handle = stream.device().useCublas(stream);
        Buffer c = pool.allocate(BYTES, stream)) {
      Buffer a = pool.allocate(BYTES, stream);
      long address = a.address();
      driver.answer(
          "gemm",
          call -> {
            CompletableFuture.runAsync(() -> stream.beginCapture(CaptureOptions.DEFAULTS)).join();
            return call.proceed();
          });
      MatrixProducts.multiply(handle, PRODUCT, c, a, a);
      driver.unscript("gemm");
      try (CudaGraph graph = stream.endCapture()) {
        a.close();
        assertThat(GraphDefinition.of(graph).nodes()).isNotEmpty();
        try (Buffer other = pool.allocate(BYTES, stream)) {
          assertThat(other.address()).isNotEqualTo(address);
        }
      }
    }
    Graph.awaitGone(pool, stream);
  }
}
