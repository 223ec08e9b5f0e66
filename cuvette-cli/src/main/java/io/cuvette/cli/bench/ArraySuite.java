package io.cuvette.cli.bench;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.array.BinaryOperation;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.ElementType;
import io.cuvette.array.Reduction;
import io.cuvette.array.UnaryOperation;
import java.util.List;
import java.util.Locale;

/**
 * Products of square matrices, and operations on each element beside a copy within the device: all
 * of zeros, so that no device has to slow down for its power. Stateless.
 */
final class ArraySuite {
  /** The simulator computes in Java. */
  private static final List<Integer> SIMULATED_SIDES = List.of(32);

  private static final List<Integer> SIDES = List.of(1024, 4096, 5000);
  private static final List<ElementType> TYPES =
      List.of(ElementType.FLOAT16, ElementType.BFLOAT16, ElementType.FLOAT32, ElementType.FLOAT64);

  private static final int FEW = 32;
  private static final long ARRAY_BYTES = 256L << 20;
  private static final long SIMULATED_BYTES = 64L << 10;
  private static final String OF_CUBLAS = "97 % of cuBLAS from C";
  private static final String OF_COPY = "85 % of a copy";

  private ArraySuite() {}

  static void run(Cuda cuda, Figures figures) {
    boolean simulated = cuda.isSimulated();
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        Scope _ = stream.use()) {
      CudaArrays arrays = CudaArrays.of(cuda);
      TYPES.forEach(type -> warmUp(arrays, figures, type));
      for (int side : simulated ? SIMULATED_SIDES : SIDES) {
        TYPES.forEach(type -> product(arrays, figures, type, side));
      }
      elements(arrays, figures, simulated ? SIMULATED_BYTES : ARRAY_BYTES);
    }
  }

  /** Large arrays keep a device busy long before the code is compiled. */
  private static void warmUp(CudaArrays arrays, Figures figures, ElementType type) {
    try (CudaArray a = arrays.zeros(type, FEW, FEW);
        CudaArray b = arrays.zeros(type, FEW, FEW);
        CudaArray c = arrays.zeros(type, FEW, FEW)) {
      double _ =
          nanos(
              arrays,
              figures,
              () -> {
                a.matmul(b, c);
                a.map(UnaryOperation.SQRT, c);
                a.combine(BinaryOperation.ADD, b, c);
                a.combine(BinaryOperation.LESS, b).close();
                a.reduce(Reduction.SUM).close();
              });
    }
  }

  private static void product(CudaArrays arrays, Figures figures, ElementType type, int side) {
    try (CudaArray a = arrays.zeros(type, side, side);
        CudaArray b = arrays.zeros(type, side, side);
        CudaArray c = arrays.empty(type, side, side)) {
      double nanos = nanos(arrays, figures, () -> a.matmul(b, c));
      double operations = 2.0 * side * side * side;
      String work = "product-%s-%d".formatted(type.name().toLowerCase(Locale.ROOT), side);
      figures.product(work, operations / nanos / 1e3, OF_CUBLAS);
    }
  }

  private static void elements(CudaArrays arrays, Figures figures, long bytes) {
    long count = bytes / Float.BYTES;
    String size = bytes >= 1 << 20 ? (bytes >> 20) + "MiB" : (bytes >> 10) + "KiB";
    try (CudaArray a = arrays.zeros(ElementType.FLOAT32, count);
        CudaArray b = arrays.zeros(ElementType.FLOAT32, count);
        CudaArray c = arrays.zeros(ElementType.FLOAT32, count);
        CudaArray is = arrays.empty(ElementType.BOOLEAN, count)) {
      CudaStream stream = arrays.stream();
      double copied = nanos(arrays, figures, () -> c.buffer().copyFrom(a.buffer(), stream));
      figures.copy("array-copy-" + size, 2 * bytes / copied, "");
      double root = nanos(arrays, figures, () -> a.map(UnaryOperation.SQRT, c));
      figures.copy("array-sqrt-" + size, 2 * bytes / root, OF_COPY);
      double added = nanos(arrays, figures, () -> a.combine(BinaryOperation.ADD, b, c));
      figures.copy("array-add-" + size, 3 * bytes / added, OF_COPY);
      double compared = nanos(arrays, figures, () -> a.combine(BinaryOperation.LESS, b, is));
      figures.copy("array-less-" + size, (2 * bytes + count) / compared, OF_COPY);
      double summed = nanos(arrays, figures, () -> a.reduce(Reduction.SUM).close());
      figures.copy("array-sum-" + size, bytes / summed, OF_COPY);
    }
  }

  /** The nanoseconds of one of many that are queued and waited for together. */
  private static double nanos(CudaArrays arrays, Figures figures, Runnable work) {
    return figures
        .best()
        .nanos(n -> {
          for (int i = 0; i < n; i++) {
            work.run();
          }
          arrays.stream().synchronize();
        });
  }
}
