package io.cuvette.array;

import static io.cuvette.array.ElementType.BOOLEAN;
import static io.cuvette.array.ElementType.COMPLEX64;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT32;
import static io.cuvette.array.ElementType.INT64;
import static io.cuvette.array.ElementType.INT8;
import static io.cuvette.array.ElementType.UINT8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What does not fit is refused with the value and the rule, before anything changed. */
class ArrayInputTest {

  private static void refused(Runnable call, String message) {
    assertThatThrownBy(call::run)
        .isInstanceOfAny(IllegalArgumentException.class, IndexOutOfBoundsException.class)
        .hasMessageContaining(message);
  }

  @Test
  void shapes_thatAreNone() {
    refused(() -> Layout.of(2, -1), "shape: [2, -1] (expected: sizes >= 0)");
    refused(() -> Layout.of(new long[33]), "shape: 33 axes (expected: at most 32)");
    refused(() -> Layout.of(1L << 32, 1L << 31), "expected: at most 2^63-1 elements");
    refused(() -> Layout.of(1L << 40, 1L << 40, 0), "expected: at most 2^63-1 elements");
    refused(() -> Layout.of(Order.K, 1), "order: K (expected: C or F)");
    assertThat(Layout.of(1L << 31, 1L << 31).size()).isEqualTo(1L << 62);
  }

  @Test
  void strides_thatLeaveTheMemory() {
    refused(() -> strided(-1, 0, 3), "expected: elements at 0 to 2^63-2");
    refused(() -> strided(-1, 1, 3), "expected: elements at 0 to 2^63-2");
    refused(() -> strided(Long.MAX_VALUE, 1, 3), "expected: elements at 0 to 2^63-2");
    refused(() -> strided(Long.MIN_VALUE, 1, 2), "expected: elements at 0 to 2^63-2");
    refused(() -> strided(1, Long.MAX_VALUE, 1), "expected: elements at 0 to 2^63-2");
    refused(() -> Layout.strided(new long[] {2}, new long[0], 0), "one for each axis of [2]");
    assertThat(strided(-1, 2, 3).lowest()).isZero();
  }

  private static Layout strided(long stride, long offset, long size) {
    return Layout.strided(new long[] {size}, new long[] {stride}, offset);
  }

  @Test
  void views_thatAreNot() {
    Layout a = Layout.of(2, 3);
    refused(() -> a.slice(Range.at(2)), "index: 2 on axis 0 (expected: -2 to 1)");
    refused(() -> a.slice(Range.at(Long.MIN_VALUE)), "on axis 0 (expected: -2 to 1)");
    refused(() -> Layout.of(0).slice(Range.at(0)), "expected: none, its size is 0");
    refused(() -> a.slice(Range.all(), Range.all(), Range.all()), "for at most 2 axes");
    refused(() -> Range.all().step(0), "step: 0 (expected: not 0)");
    refused(() -> Range.at(1).step(2), "step of 1 (expected: of a range)");
    refused(() -> a.reshape(4), "shape: [4] (expected: one of 6 elements");
    refused(() -> a.reshape(4, -1), "shape: [4, -1] (expected: one of 6 elements");
    refused(() -> a.reshape(-1, -1), "-1 at most once");
    refused(() -> a.reshape(-2, 3), "shape: [-2, 3]");
    refused(() -> a.reshape(0, -1), "expected: one of 6 elements");
    refused(() -> a.transpose(0, 0), "axes: [0, 0] (expected: each of 2 axes once)");
    refused(() -> a.transpose(0), "expected: each of 2 axes once");
    refused(() -> a.transpose(0, 2), "expected: each of 2 axes once");
    refused(() -> a.broadcastTo(3), "shape: [3] (expected: one that [2, 3] can be broadcast to)");
    refused(() -> a.broadcastTo(4, 3), "expected: one that [2, 3] can be broadcast to");
    refused(() -> a.squeeze(0), "axis: 0 of [2, 3] (expected: one of size 1)");
    refused(() -> a.expand(3), "axis: 3 (expected: -3 to 2)");
    refused(() -> a.shape(2), "axis: 2 (expected: -2 to 1)");
    refused(() -> Layout.of().shape(0), "there are no axes");
    refused(() -> a.at(1), "1 indices (expected: 2");
    refused(
        () -> Layout.broadcastShape(new long[] {2}, new long[] {3}),
        "expected: sizes that are equal or 1 on each axis");
    assertThat(a.slice(Range.of(Long.MIN_VALUE, Long.MAX_VALUE)).shape()).containsExactly(2, 3);
    assertThat(a.slice(Range.all().step(Long.MAX_VALUE)).shape()).containsExactly(1, 3);
    assertThat(a.slice(Range.all().step(-Long.MAX_VALUE)).shape()).containsExactly(1, 3);
  }

  @CudaTest
  void sizes_thatNoMemoryHas(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    refused(() -> cp.empty(FLOAT64, 1L << 60), "expected: at most 2^63-1 bytes");
    refused(() -> HostArrays.of(cuda).zeros(FLOAT64, 1L << 61), "expected: at most 2^63-1 bytes");
    refused(() -> cp.empty(FLOAT64, -1), "shape: [-1] (expected: sizes >= 0)");
    assertThat(cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes()).isZero();
  }

  /** A view of memory without bytes begins behind its end. */
  @CudaTest
  void partsOfNothing_areWrittenAndWrapped(Cuda cuda) {
    HostArrays np = HostArrays.of(cuda);
    for (ArrayModule<?> module : List.of(CudaArrays.of(cuda), np)) {
      try (NdArray a = module.ones(FLOAT32, 0, 5)) {
        NdArray part = a.slice(Range.all(), Range.from(2));
        part.fill(0);
        part.fill(1.5);
        part.copyFrom(part);
        assertThat(part.layout().offset()).isEqualTo(2);
      }
    }
    HostArray none =
        np.wrap(MemorySegment.ofArray(new float[0]), FLOAT32, Layout.of(0, 5))
            .slice(Range.all(), Range.from(2));
    assertThat(np.wrap(none.segment(), FLOAT32, none.layout()).size()).isZero();
  }

  @CudaTest
  void bytesOfABroadcastArray_thatNoLongCounts(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).zeros(FLOAT64, 1)) {
      refused(() -> a.broadcastTo(1L << 60).byteSize(), "expected: at most 2^63-1 bytes");
      assertThat(a.broadcastTo(1L << 59).byteSize()).isEqualTo(1L << 62);
    }
  }

  @CudaTest
  void values_thatATypeDoesNotHold(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    refused(() -> cp.full(INT8, 128L, 2), "value: 128 (expected: an integer of INT8");
    refused(() -> cp.full(UINT8, -1L, 2), "value: -1 (expected: an integer of UINT8: 0 to 2^8-1)");
    refused(() -> cp.full(INT32, 2.5, 2), "value: 2.5 (expected: an integer of INT32");
    refused(() -> cp.full(INT32, Double.NaN, 2), "value: NaN (expected: an integer of INT32");
    refused(() -> cp.full(INT64, 0x1p63, 2), "value: 9.2233");
    refused(() -> cp.full(FLOAT32, new Complex(1, 2), 2), "expected: a real number for FLOAT32");
    assertThat(cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes()).isZero();
    try (CudaArray nan = cp.full(FLOAT32, Double.NaN, 2);
        CudaArray infinite = cp.full(COMPLEX64, Double.NEGATIVE_INFINITY, 2);
        HostArray host = infinite.toHost()) {
      assertThat(nan.toArray(float[].class)).containsOnly(Float.NaN);
      assertThat(host.getComplex(1)).isEqualTo(new Complex(Double.NEGATIVE_INFINITY, 0));
    }
  }

  @CudaTest
  void sequences_thatHaveNoEnd(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    refused(() -> cp.arange(FLOAT64, Double.NaN, 1, 1), "start: NaN (expected: finite)");
    refused(() -> cp.arange(FLOAT64, 0, Double.POSITIVE_INFINITY, 1), "stop: Infinity");
    refused(() -> cp.arange(FLOAT64, 0, 1, Double.NaN), "step: NaN (expected: finite)");
    refused(() -> cp.arange(FLOAT64, 0.0, 1.0, 0.0), "step: 0.0 (expected: not 0)");
    refused(() -> cp.arange(FLOAT64, 0, 1e300, 1e-300), "expected: at most 2^63-1");
    refused(() -> cp.arange(INT32, 0, 1, 0), "step: 0 (expected: not 0)");
    refused(() -> cp.arange(INT8, 0, 200, 1), "value: 199 (expected: an integer of INT8");
    refused(() -> cp.arange(BOOLEAN, 2), "type: BOOLEAN (expected: a type of numbers)");
    refused(() -> cp.arange(INT32, 0.0, 1.0, 0.5), "expected: a floating or complex type");
    refused(() -> cp.arange(INT64, Long.MIN_VALUE, Long.MAX_VALUE, 1), "at most 2^63-1 elements");
    refused(() -> cp.linspace(FLOAT64, 0, 1, -1), "count: -1 (expected: >= 0)");
    refused(
        () -> cp.linspace(FLOAT64, -Double.MAX_VALUE, Double.MAX_VALUE, 2),
        "last - first: Infinity (expected: finite)");
    try (CudaArray all = cp.arange(INT64, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 62);
        CudaArray none = cp.arange(INT64, 5, 5, 1);
        CudaArray down = cp.arange(INT32, 3, -4, -3);
        CudaArray line = cp.linspace(FLOAT64, 0, 1, 5)) {
      assertThat(all.toArray(long[].class))
          .containsExactly(Long.MIN_VALUE, -(1L << 62), 0, 1L << 62);
      assertThat(none.size()).isZero();
      assertThat(down.toArray(int[].class)).containsExactly(3, 0, -3);
      assertThat(line.toArray(double[].class)).containsExactly(0, 0.25, 0.5, 0.75, 1);
    }
  }

  @CudaTest
  void arraysOfJava_thatAreNot(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    refused(() -> cp.array("text"), "values: java.lang.String (expected: an array");
    refused(() -> cp.array(new Integer[] {1}), "values: java.lang.Integer[]");
    refused(() -> cp.array(new float[][] {{1}, {1, 2}}), "arrays of 1 and 2 elements at depth 1");
    assertThatThrownBy(() -> cp.array(new float[][] {{1}, null}))
        .isInstanceOf(NullPointerException.class);
    try (CudaArray a = cp.array(new float[2][3][0])) {
      assertThat(a.shape()).containsExactly(2, 3, 0);
      refused(() -> a.toArray(float[].class), "expected: an array of 3 dimensions with elements");
      refused(() -> a.toArray(double[][][].class), "elements of FLOAT32");
      refused(() -> a.toArray(float.class), "javaType: float");
    }
    try (CudaArray number = cp.full(FLOAT32, 2);
        CudaArray unsigned = cp.zeros(UINT8, 2);
        HostArray onHost = number.toHost()) {
      refused(() -> number.toArray(float[].class), "expected: toHost().getDouble()");
      assertThat(onHost.getDouble()).isEqualTo(2);
      refused(() -> unsigned.toArray(byte[].class), "UINT8, which Java does not have");
    }
    assertThat(cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes()).isZero();
    assertThat(cuda.defaultPinnedMemoryPool().stats().usedBytes()).isZero();
  }

  @CudaTest
  void copies_thatDoNotFit(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (CudaArray a = cp.zeros(INT32, 4, 4);
        CudaArray b = cp.ones(INT32, 3)) {
      refused(() -> a.copyFrom(b), "shape: [4, 4] (expected: one that [3] can be broadcast to)");
      refused(() -> a.slice(Range.to(3)).copyFrom(a.slice(Range.from(1))), "overlaps the target");
      refused(() -> a.copyFrom(a), "overlaps the target");
      refused(() -> b.broadcastTo(2, 3).fill(1), "expected: no two elements in one place");
      refused(() -> b.broadcastTo(2, 3).copyFrom(b), "expected: no two elements in one place");
      a.slice(Range.all(), Range.all().step(2))
          .copyFrom(a.slice(Range.all(), Range.from(1).step(2))); // apart, side by side
    }
    HostArray fixed =
        HostArrays.of(cuda)
            .wrap(MemorySegment.ofArray(new int[3]).asReadOnly(), INT32, Layout.of(3));
    refused(() -> fixed.fill(1), "is read-only");
    refused(() -> fixed.setLong(1, 0), "is read-only");
    assertThat(fixed.getLong(2)).isZero();
  }

  @CudaTest
  void elements_thatAreNot(Cuda cuda) {
    try (HostArray a = HostArrays.of(cuda).zeros(FLOAT32, 2, 2);
        HostArray flags = HostArrays.of(cuda).zeros(BOOLEAN, 2)) {
      refused(() -> a.getDouble(2, 0), "index: 2 on axis 0");
      refused(() -> a.getDouble(0), "1 indices (expected: 2");
      refused(() -> a.getLong(0, 0), "FLOAT32 (expected: an integer type)");
      refused(() -> a.setComplex(new Complex(0, 1), 0, 0), "expected: a real number");
      a.setDouble(0.1, -1, -1);
      assertThat(a.getDouble(1, 1)).isEqualTo(0.1f);
      flags.setLong(7, 1);
      assertThat(flags.toArray(boolean[].class)).containsExactly(false, true);
    }
  }

  @CudaTest
  void memory_thatIsTooSmallOrAskew(Cuda cuda) {
    CudaArrays cp = CudaArrays.of(cuda);
    try (Buffer buffer = cuda.allocate(64)) {
      refused(
          () -> cp.wrap(buffer, FLOAT64, Layout.of(9)),
          "elements 0 to 8, of 8 bytes each (expected: within 64 bytes)");
      refused(() -> cp.wrap(buffer.slice(4), FLOAT64, Layout.of(2)), "a multiple of 8 for FLOAT64");
      refused(() -> cp.adopt(buffer.slice(8), FLOAT64, Layout.of(2)), "one that owns its memory");
      assertThat(cp.wrap(buffer.slice(4), COMPLEX64, Layout.of(7)).size()).isEqualTo(7);
      try (Cuda other = Cuda.open(CudaOptions.simulated())) {
        refused(
            () -> CudaArrays.of(other).wrap(buffer, INT8, Layout.of(1)), "belongs to another Cuda");
        refused(() -> cp.on(other.currentStream()).zeros(INT8, 1), "belongs to another Cuda");
      }
    }
    refused(
        () -> HostArrays.of(cuda).wrap(MemorySegment.ofArray(new int[2]), INT64, Layout.of(2)),
        "expected: within 8 bytes");
    assertThatIllegalArgumentException().isThrownBy(ArrayModule::of);
  }

  @CudaTest(devices = 2)
  void streams_ofAnotherDevice(Cuda cuda, @OnDevice(1) CudaStream other) {
    try (CudaArray a = CudaArrays.of(cuda.device(0)).zeros(INT32, 4);
        CudaArray b = CudaArrays.of(cuda.device(0)).ones(INT32, 4);
        CudaArray there = CudaArrays.of(cuda.device(1)).on(other).full(INT32, 5L, 4)) {
      other.synchronize();
      refused(() -> a.copyFrom(b, other), "device");
      a.copyFrom(there); // across devices
      assertThat(a.toArray(int[].class)).containsOnly(5);
      assertThat(there.device().id()).isEqualTo(1);
    }
  }

  @CudaTest
  void closedArrays_sayThatTheyAre(Cuda cuda) {
    CudaArray a = CudaArrays.of(cuda).zeros(INT32, 4);
    CudaArray view = a.slice(Range.from(1));
    HostArray host = HostArrays.of(cuda).zeros(INT32, 4);
    a.close();
    a.close();
    host.close();
    assertThat(view.isClosed()).isTrue();
    assertThat(view.shape()).containsExactly(3);
    for (Runnable use :
        new Runnable[] {
          () -> a.fill(1),
          () -> view.fill(1),
          a::transpose,
          () -> a.slice(Range.from(1)),
          () -> a.reshape(2, 2),
          a::copy,
          a::toHost,
          () -> a.asType(FLOAT32),
          () -> a.toArray(int[].class),
          () -> host.getLong(0),
          () -> host.setLong(1, 0),
          () -> host.fill(1),
          host::copy,
          host::toHost
        }) {
      assertThatIllegalStateException().isThrownBy(use::run).withMessageContaining("closed");
    }
  }
}
