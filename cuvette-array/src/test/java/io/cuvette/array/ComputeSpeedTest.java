package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT16;
import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.testkit.CudaTest;

/**
 * Measures kernels and products by events of the device, and prints the figures; on a GPU, with
 * {@code -Dcuvette.compute.speed=true}.
 */
class ComputeSpeedTest {
  private static final long BYTES = 256L << 20;
  private static final int TIMES = 20;
  private static final double LEAST_SHARE = 0.85;

  private static double millis(CudaStream stream, Runnable work) {
    work.run();
    work.run();
    try (CudaEvent start = stream.device().createEvent(EventOptions.DEFAULTS);
        CudaEvent end = stream.device().createEvent(EventOptions.DEFAULTS)) {
      start.record(stream);
      for (int i = 0; i < TIMES; i++) {
        work.run();
      }
      end.record(stream);
      end.synchronize();
      return CudaEvent.elapsedMillis(start, end) / TIMES;
    }
  }

  private static double print(String name, double bytes, double millis) {
    double rate = bytes / millis / 1e6;
    System.out.printf("%-28s %8.3f ms %8.0f GB/s%n", name, millis, rate);
    return rate;
  }

  @CudaTest(sanitized = false)
  void elementsAndProducts_areAsFastAsTheDevice(Cuda cuda) {
    assumeTrue(Boolean.getBoolean("cuvette.compute.speed") && !cuda.isSimulated());
    CudaArrays cp = CudaArrays.of(cuda);
    CudaStream stream = cuda.currentStream();
    long count = BYTES / 4;
    try (CudaArray a = ArrayRandom.of(cp, 1).uniform(FLOAT32, count);
        CudaArray b = ArrayRandom.of(cp, 2).uniform(FLOAT32, count);
        CudaArray c = cp.empty(FLOAT32, count)) {
      double copy =
          print("copy", 2.0 * BYTES, millis(stream, () -> c.buffer().copyFrom(a.buffer(), stream)));
      double add =
          print("add", 3.0 * BYTES, millis(stream, () -> a.combine(BinaryOperation.ADD, b, c)));
      double exp = print("exp", 2.0 * BYTES, millis(stream, () -> a.map(UnaryOperation.EXP, c)));
      print("sin", 2.0 * BYTES, millis(stream, () -> a.map(UnaryOperation.SIN, c)));
      print("sum", BYTES, millis(stream, () -> a.reduce(Reduction.SUM).close()));
      CudaArray square = a.reshape(8192, 8192);
      print("sum of columns", BYTES, millis(stream, () -> square.reduce(Reduction.SUM, 0).close()));
      print(
          "transposed copy", 2.0 * BYTES, millis(stream, () -> square.transpose().copy().close()));
      print("to FLOAT16", 1.5 * BYTES, millis(stream, () -> a.asType(FLOAT16).close()));
      print(
          "strided add",
          1.5 * BYTES,
          millis(
              stream,
              () ->
                  a.slice(Range.all().step(2))
                      .combine(BinaryOperation.ADD, b.slice(Range.all().step(2)))
                      .close()));
      assertThat(add).isGreaterThan(LEAST_SHARE * copy);
      assertThat(exp).isGreaterThan(LEAST_SHARE * copy);
    }
    for (ElementType type : new ElementType[] {FLOAT16, FLOAT32, FLOAT64}) {
      for (long size : new long[] {1000, 5000}) {
        product(cp, stream, type, size);
      }
    }
  }

  private static void product(CudaArrays cp, CudaStream stream, ElementType type, long size) {
    try (CudaArray values = ArrayRandom.of(cp, 3).uniform(FLOAT32, size, size);
        CudaArray a = values.asType(type);
        CudaArray out = cp.empty(type, size, size)) {
      double millis = millis(stream, () -> a.matmul(a, out));
      System.out.printf(
          "matmul %s %d: %8.3f ms %8.1f TFLOP/s%n",
          type, size, millis, 2e-9 * size * size * size / millis);
    }
  }
}
