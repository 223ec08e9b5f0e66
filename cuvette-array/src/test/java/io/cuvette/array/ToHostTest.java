package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT32;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import java.lang.foreign.MemorySegment;

/** Copies to the host mean what CuPy's asnumpy means. */
class ToHostTest {
  private static final int[][] VALUES = {{1, 2, 3}, {4, 5, 6}};

  @CudaTest
  void result_isInOrderC_andPageLocked(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).array(VALUES);
        HostArray host = a.transpose().toHost()) {
      assertThat(host.isContiguous(Order.C)).isTrue();
      assertThat(host.isPinned()).isTrue();
      assertThat(host.isView()).isFalse();
      assertThat(host.toArray(int[][].class)).isDeepEqualTo(new int[][] {{1, 4}, {2, 5}, {3, 6}});
      assertThat(cuda.defaultPinnedMemoryPool().stats().usedBytes()).isPositive();
    }
  }

  @CudaTest
  void orderA_followsTheArray(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).array(VALUES);
        HostArray rows = a.toHost(null, Order.A, null, true);
        HostArray columns = a.transpose().toHost(null, Order.A, null, true);
        HostArray part = a.slice(Range.all(), Range.of(0, 2)).toHost(null, Order.A, null, true);
        HostArray forced = a.toHost(null, Order.F, null, true)) {
      assertThat(rows.isContiguous(Order.C)).isTrue();
      assertThat(columns.isContiguous(Order.F)).isTrue();
      assertThat(part.isContiguous(Order.C)).isTrue();
      assertThat(forced.isContiguous(Order.F)).isTrue();
      assertThat(forced.toArray(int[][].class)).isDeepEqualTo(VALUES);
      assertThat(columns.getLong(2, 1)).isEqualTo(6);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.toHost(null, Order.K, null, true))
          .withMessage("order: K (expected: C, F or A)");
    }
  }

  @CudaTest
  void out_isFilledAndReturned_whateverItsOrder(Cuda cuda) {
    int[] heap = new int[6];
    HostArrays host = HostArrays.of(cuda);
    HostArray out = host.wrap(MemorySegment.ofArray(heap), INT32, Layout.of(Order.F, 2, 3));
    try (CudaArray a = CudaArrays.of(cuda).array(VALUES);
        HostArray pinned = host.empty(INT32, 2, 3)) {
      assertThat(a.toHost(null, Order.C, out, true)).isSameAs(out);
      assertThat(heap).containsExactly(1, 4, 2, 5, 3, 6);
      assertThat(a.toHost(null, Order.F, pinned, true)).isSameAs(pinned);
      assertThat(pinned.toArray(int[][].class)).isDeepEqualTo(VALUES);
    }
  }

  @CudaTest
  void outThatIsAPartOfPageLockedMemory_isFilledWhereItIs(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).array(VALUES);
        HostArray pinned = HostArrays.of(cuda).zeros(INT32, 4, 3);
        HostArray part = pinned.slice(Range.of(2, 4))) {
      assertThat(a.toHost(null, Order.C, part, true)).isSameAs(part);
      assertThat(pinned.toArray(int[][].class))
          .isDeepEqualTo(new int[][] {{0, 0, 0}, {0, 0, 0}, {1, 2, 3}, {4, 5, 6}});
    }
  }

  @CudaTest
  void outThatDoesNotFit_isRefused_beforeItIsWritten(Cuda cuda) {
    HostArrays host = HostArrays.of(cuda);
    try (CudaArray a = CudaArrays.of(cuda).array(VALUES);
        HostArray type = host.zeros(FLOAT32, 2, 3);
        HostArray shape = host.zeros(INT32, 3, 2);
        HostArray gaps = host.zeros(INT32, 2, 6)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.toHost(null, Order.C, type, true))
          .withMessage("out: elements of FLOAT32 (expected: INT32)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.toHost(null, Order.C, shape, true))
          .withMessage("out: shape [3, 2] (expected: [2, 3])");
      HostArray part = gaps.slice(Range.all(), Range.all().step(2));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.toHost(null, Order.C, part, true))
          .withMessageContaining("expected: contiguous in order C or F");
      HostArray heap = host.wrap(MemorySegment.ofArray(new int[6]), INT32, Layout.of(2, 3));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.toHost(null, Order.C, heap, false))
          .withMessageContaining("expected: page-locked memory, if the copy is not waited for");
      assertThat(shape.toArray(int[][].class)).isDeepEqualTo(new int[3][2]);
    }
  }

  /** As DLPack gives page-locked memory that its producer only lets read. */
  @CudaTest
  void readOnlyOut_isRefused_alsoIfItIsPageLocked(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).array(VALUES);
        PinnedBuffer memory = cuda.allocatePinned(a.byteSize())) {
      HostArray out =
          new HostArray(cuda, memory.segment().asReadOnly(), memory, INT32, Layout.of(2, 3), false);
      for (boolean blocking : new boolean[] {true, false}) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> a.toHost(null, Order.C, out, blocking))
            .withMessageEndingWith("is read-only");
      }
    }
  }

  @CudaTest(seeds = 5)
  void copyThatIsNotWaitedFor_isOrderedInItsStream_andKeepsItsMemory(
      Cuda cuda, @NonBlocking CudaStream stream) {
    CudaArrays cp = CudaArrays.of(cuda).on(stream);
    HostArray host;
    try (CudaArray a = cp.full(FLOAT64, 1.5, 300, 40)) {
      host = a.transpose().toHost(stream, Order.C, null, false);
    } // closed while the copy may not have begun
    try (CudaArray other = cp.full(FLOAT64, 7.0, 300, 40)) {
      assertThat(other.address()).isNotZero();
      stream.synchronize();
      for (int i = 0; i < 40; i++) {
        assertThat(host.getDouble(i, 299 - i)).isEqualTo(1.5);
      }
    } finally {
      host.close();
    }
  }

  @CudaTest(seeds = 5)
  void pageLockedTargetClosedMeanwhile_isNotLentBeforeTheCopyIsDone(
      Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaArray a = CudaArrays.of(cuda).on(stream).full(INT32, 3L, 50_000)) {
      a.toHost(stream, Order.C, null, false).close();
      try (HostArray next = HostArrays.of(cuda).full(INT32, 8L, 50_000)) {
        stream.synchronize();
        assertThat(next.toArray(int[].class)).containsOnly(8);
      }
    }
  }

  @CudaTest(devices = 2)
  void streamOfAnotherDevice_isRefused(Cuda cuda, @OnDevice(1) CudaStream other) {
    try (CudaArray a = CudaArrays.of(cuda.device(0)).array(VALUES)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> a.toHost(other, Order.C, null, true))
          .withMessageContaining("expected: a stream of its device");
    }
  }

  @CudaTest
  void arrayOnTheHost_isReturnedAsAView_orCopiedForItsOrder(Cuda cuda) {
    try (HostArray a = HostArrays.of(cuda).array(VALUES);
        HostArray same = a.toHost();
        HostArray columns = a.toHost(null, Order.F, null, true);
        HostArray out = HostArrays.of(cuda).zeros(INT32, 2, 3)) {
      assertThat(same.isView()).isTrue();
      same.setLong(9, 0, 0);
      assertThat(a.getLong(0, 0)).isEqualTo(9);
      assertThat(columns.isView()).isFalse();
      assertThat(a.toHost(null, Order.C, out, true)).isSameAs(out);
      assertThat(out.getLong(1, 2)).isEqualTo(6);
    }
  }

  @CudaTest
  void emptyArrays_andThoseWithoutAxes_comeToo(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray none = cp.zeros(FLOAT32, 3, 0);
        CudaArray one = cp.full(FLOAT32, 2.5);
        HostArray noneHere = none.toHost();
        HostArray oneHere = one.toHost(null, Order.F, null, false)) {
      assertThat(noneHere.shape()).containsExactly(3, 0);
      assertThat(none.toArray(float[][].class)).isDeepEqualTo(new float[3][0]);
      cuda.currentStream().synchronize();
      assertThat(oneHere.getDouble()).isEqualTo(2.5);
    }
  }
}
