package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static io.cuvette.array.ElementType.INT32;
import static io.cuvette.array.ElementType.INT8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is in arrays: of all types of Java, of many elements, and in graphs. */
class ArrayValuesTest {
  private static final List<Object> NESTED =
      List.of(
          new boolean[][] {{true, false}, {false, true}, {true, true}},
          new byte[][] {{-128, 127}, {0, 1}},
          new short[][][] {{{Short.MIN_VALUE, 2}}, {{3, Short.MAX_VALUE}}},
          new char[][] {{'\uffff', 0}, {'a', 'b'}},
          new int[][] {{Integer.MIN_VALUE, 2, 3}, {4, 5, Integer.MAX_VALUE}},
          new long[][] {{Long.MIN_VALUE}, {Long.MAX_VALUE}},
          new float[][] {{Float.NaN, Float.NEGATIVE_INFINITY}, {-0f, Float.MIN_VALUE}},
          new double[][][][] {{{{Double.NaN, Double.MAX_VALUE}}}},
          new double[] {1, 2, 3},
          new boolean[] {true},
          new int[0],
          new long[3][0]);

  @CudaTest
  void arraysOfJava_comeBackAsTheyWent(Cuda cuda) {
    for (ArrayModule<?> module : List.of(CudaArrays.of(cuda), HostArrays.of(cuda))) {
      for (Object values : NESTED) {
        try (NdArray a = module.array(values);
            NdArray turned = a.transpose().copy()) {
          assertThat(a.toArray(values.getClass())).isEqualTo(values);
          assertThat(turned.transpose().toArray(values.getClass())).isEqualTo(values);
        }
      }
    }
  }

  @CudaTest
  void moreThanAnIntOfElements_areReachedByLongs(Cuda cuda) {
    long size = (1L << 31) + 16;
    try (CudaArray a = CudaArrays.of(cuda).empty(INT8, size)) {
      a.slice(Range.from(-16)).fill(0);
      CudaArray end = a.slice(Range.from(-16).step(3));
      end.fill(7);
      a.slice(Range.of(0, 1)).fill(-1);
      assertThat(end.toArray(byte[].class)).hasSize(6).containsOnly(7);
      assertThat(a.slice(Range.at(size - 16)).expand(0).toArray(byte[].class)).containsExactly(7);
      assertThat(a.reshape(2, -1).slice(Range.at(0), Range.to(1)).toArray(byte[].class))
          .containsExactly(-1);
    }
  }

  @CudaTest
  void capturedArrays_areThereInEachLaunch(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaArrays cp = CudaArrays.of(cuda).on(stream);
    try (CudaArray source = cp.zeros(FLOAT32, 100);
        HostArray out = HostArrays.of(cuda).zeros(FLOAT32, 100)) {
      stream.synchronize();
      CudaGraph graph =
          stream.capture(() -> {
            try (CudaArray copied = cp.array(source)) {
              copied.slice(Range.to(50)).copyFrom(source.slice(Range.from(50)), stream);
              copied.toHost(stream, Order.C, out, false);
            }
          });
      try (graph;
          CudaGraphExec launched = graph.instantiate()) {
        for (int round = 1; round < 4; round++) {
          source.copyFrom(source(cuda, round));
          launched.launch(stream);
          stream.synchronize();
          assertThat(out.toArray(float[].class)).containsOnly(round);
        }
      }
    }
  }

  private static HostArray source(Cuda cuda, int value) {
    float[] values = new float[100];
    java.util.Arrays.fill(values, value);
    return HostArrays.of(cuda)
        .wrap(java.lang.foreign.MemorySegment.ofArray(values), FLOAT32, Layout.of(100));
  }

  @CudaTest
  void copyThatWaits_isRefusedInACapture_andLeavesNothing(
      Cuda cuda, @NonBlocking CudaStream stream) {
    CudaArrays cp = CudaArrays.of(cuda).on(stream);
    try (CudaArray a = cp.zeros(INT32, 10)) {
      stream.synchronize();
      CudaGraph graph =
          stream.capture(() -> {
            assertThatIllegalStateException()
                .isThrownBy(() -> a.toHost(stream, Order.C, null, true));
            a.fill(1);
          });
      graph.close();
    }
  }

  @CudaTest
  void arraysWithoutAxes_haveOneElement(Cuda cuda) {
    for (ArrayModule<?> module : List.of(CudaArrays.of(cuda), HostArrays.of(cuda))) {
      try (NdArray one = module.full(FLOAT64, 4.5);
          NdArray none = module.ones(FLOAT64, 0, 3);
          NdArray copied = none.copy(Order.F)) {
        assertThat(one.rank()).isZero();
        assertThat(one.size()).isEqualTo(1);
        assertThat(one.expand(0).toArray(double[].class)).containsExactly(4.5);
        assertThat(one.broadcastTo(2, 2).toArray(double[][].class)[1]).containsOnly(4.5);
        none.fill(9);
        none.copyFrom(one);
        assertThat(copied.byteSize()).isZero();
        assertThat(none.reshape(3, 0).shape()).containsExactly(3, 0);
      }
    }
  }

  @Test
  void complexNumbers_areWrittenAsOnPaper() {
    assertThat(new Complex(1, -2)).hasToString("1.0-2.0i");
    assertThat(new Complex(0, 0.5)).hasToString("0.0+0.5i");
    assertThat(new Complex(0, -0.0)).hasToString("0.0-0.0i");
  }
}
