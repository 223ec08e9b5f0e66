package io.cuvette.array.guide;

import static io.cuvette.array.ElementType.BOOLEAN;
import static io.cuvette.array.ElementType.FLOAT16;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT32;
import static io.cuvette.array.ElementType.INT64;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import io.cuvette.array.ArrayModule;
import io.cuvette.array.ArrayRandom;
import io.cuvette.array.BinaryOperation;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.HostArray;
import io.cuvette.array.HostArrays;
import io.cuvette.array.Layout;
import io.cuvette.array.NdArray;
import io.cuvette.array.Order;
import io.cuvette.array.Range;
import io.cuvette.array.Reduction;
import io.cuvette.array.UnaryOperation;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;

/** The programs of docs/guide/arrays.md. */
class ArraysGuideTest {

  @CudaTest
  void arrays_goThereAndBack(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray a = cp.array(new float[][] {{1, 2, 3}, {4, 5, 6}});
        CudaArray zeros = cp.zeros(FLOAT64, 1000, 1000); // 8,000,000 bytes
        CudaArray half = a.asType(FLOAT16)) {
      assert a.type() == FLOAT32 && a.rank() == 2 && a.size() == 6;
      float[][] back = a.toArray(float[][].class); // waits
      assert back[1][2] == 6;
      assert half.byteSize() == 12 && zeros.byteSize() == 8_000_000;
    } // the memory goes back to the pool, in order of the stream
    assertThat(cuda.defaultMemoryPool().stats(cuda.currentDevice()).usedBytes()).isZero();
  }

  @CudaTest
  void views_shareMemory(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray numbers = cp.arange(INT32, 24)) {
      CudaArray cube = numbers.reshape(2, 3, 4);
      CudaArray last = cube.slice(Range.at(1), Range.reversed(), Range.from(1).step(2));
      last.fill(0); // numbers[13], [15], [17] …
      assert numbers.toArray(int[].class)[23] == 0;
      CudaArray wide = last.broadcastTo(5, 3, 2); // 5 times the same elements
      CudaArray turned = cube.transpose(); // 4 x 3 x 2
      assert wide.isView() && turned.shape()[0] == 4;
      try (CudaArray rows = turned.copy()) { // owns memory of its own, in order C
        assert rows.isContiguous(Order.C) && !turned.isContiguous(Order.C);
      }
    }
    assertThat(cuda.defaultMemoryPool().stats(cuda.currentDevice()).usedBytes()).isZero();
  }

  @CudaTest
  void streams_areChosenOnce(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaArrays cp = CudaArrays.of(cuda).on(stream);
    try (CudaArray a = cp.full(FLOAT32, 2.5, 1000);
        HostArray host = a.toHost(stream, Order.C, null, false)) { // queued
      stream.synchronize();
      assert host.getDouble(999) == 2.5;
    }
    try (Scope _ = stream.use();
        CudaArray b = CudaArrays.of(cuda).ones(FLOAT32, 10)) { // the same, by the current stream
      assertThat(b.stream()).isEqualTo(stream);
    }
  }

  @CudaTest
  void pinnedArrays_areFilledAndSent(Cuda cuda, @NonBlocking CudaStream stream) {
    try (HostArray batch = HostArray.zerosPinned(cuda, FLOAT32, 64, 768);
        CudaArray there = CudaArrays.of(cuda).on(stream).emptyLike(batch)) {
      for (int row = 0; row < 64; row++) {
        batch.setDouble(row, row, 0);
      }
      there.copyFrom(batch, stream); // queued; the batch may be closed, but not changed, meanwhile
      try (HostArray back = there.toHost(stream, Order.C, null, true)) { // waits
        assert back.getDouble(63, 0) == 63;
      }
    }
    assertThat(cuda.defaultPinnedMemoryPool().stats().usedBytes()).isZero();
  }

  static double[] diagonal(NdArray a) {
    ArrayModule<? extends NdArray> xp = ArrayModule.of(a); // where a is
    long size = Math.min(a.shape()[0], a.shape()[1]);
    try (NdArray found = xp.empty(FLOAT64, size)) {
      for (long i = 0; i < size; i++) {
        found.slice(Range.at(i)).copyFrom(a.slice(Range.at(i), Range.at(i)));
      }
      return found.toArray(double[].class);
    }
  }

  @CudaTest
  void oneText_runsOnBothSides(Cuda cuda) {
    int[][] values = {{1, 2}, {3, 4}, {5, 6}};
    try (CudaArray there = CudaArrays.of(cuda).array(values);
        HostArray here = HostArrays.of(cuda).array(values)) {
      assertThat(diagonal(there)).containsExactly(1, 4);
      assertThat(diagonal(here)).containsExactly(1, 4);
    }
  }

  @CudaTest
  void memoryOfOthers_isWrapped(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(4096)) {
      buffer.fill(0);
      CudaArrays cp = CudaArrays.of(cuda);
      CudaArray columns = cp.wrap(buffer, FLOAT32, Layout.of(Order.F, 32, 32));
      columns.slice(Range.all(), Range.at(3)).fill(1.0);
      assert cp.wrap(buffer, FLOAT32, Layout.of(1024)).toArray(float[].class)[3 * 32] == 1;
    }
    assertThat(cuda.defaultMemoryPool().stats(cuda.currentDevice()).usedBytes()).isZero();
  }

  @CudaTest
  void arrays_compute(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    ArrayRandom<CudaArray> random = ArrayRandom.of(cp, 42);
    try (CudaArray a = random.uniform(FLOAT32, 200, 300);
        CudaArray product = a.dot(a.transpose()); // by cuBLAS; the transposed view is not copied
        CudaArray roots = product.map(UnaryOperation.SQRT);
        CudaArray best = roots.reduce(Reduction.ARGMAX, 1);
        CudaArray isLarge = product.combine(BinaryOperation.GREATER, 100.0);
        NdArray mean = product.mean()) { // a number: an array without axes
      product.combine(BinaryOperation.DIVIDE, mean, product); // in place
      assert best.type() == INT64 && best.size() == 200;
      assert isLarge.type() == BOOLEAN;
    }
    assertThat(cuda.defaultMemoryPool().stats(cuda.currentDevice()).usedBytes()).isZero();
  }
}
