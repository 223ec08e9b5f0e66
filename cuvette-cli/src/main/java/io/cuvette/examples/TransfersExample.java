package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.array.ArrayRandom;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.HostArray;
import io.cuvette.array.HostArrays;
import io.cuvette.array.Order;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/** Data of Java to the device and back, and what can be queued. Stateless. */
public final class TransfersExample {
  private static final long SEED = 7;

  private TransfersExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    long rows = cuda.isSimulated() ? 60 : 10_000;
    long columns = cuda.isSimulated() ? 20 : 1000;
    arrays(cuda, rows, columns, out);
    gather(cuda, Math.toIntExact(rows), Math.toIntExact(columns), out);
    cuda.defaultMemoryPool().freeAllBlocks();
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
  }

  private static void arrays(Cuda cuda, long rows, long columns, Output out) {
    out.say(
        "%,d x %,d random doubles to the device, times themselves turned:"
            .formatted(rows, columns));
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        HostArray numbers = ArrayRandom.of(HostArrays.of(cuda), SEED).random(rows, columns);
        CudaArray waited = CudaArrays.of(cuda).asarray(numbers)) { // waits
      CudaArrays cp = CudaArrays.of(cuda).on(stream);
      try (CudaArray queued = cp.emptyLike(numbers)) {
        queued.copyFrom(numbers, stream); // queued: the source is page-locked
        try (Scope _ = stream.use();
            CudaArray product = queued.dot(waited.transpose());
            HostArray back = product.toHost(stream, Order.C, null, false)) { // queued
          stream.synchronize(); // until here the elements are not there
          out.check("shape", Arrays.toString(back.shape()), "[%d, %d]".formatted(rows, rows));
          double expected = 0;
          for (long i = 0; i < columns; i++) {
            expected += numbers.getDouble(3, i) * numbers.getDouble(5, i);
          }
          boolean isNear = Math.abs(back.getDouble(3, 5) - expected) < 1e-9 * columns;
          out.check("element [3, 5] is near", isNear, true);
        }
      }
    }
  }

  /** Rows that lie anywhere on the Java heap become one block, in one pass. */
  private static void gather(Cuda cuda, int rows, int columns, Output out) {
    out.say("%,d rows on the Java heap to one block and back:".formatted(rows));
    float[][] table = new float[rows][columns];
    for (int row = 0; row < rows; row++) {
      Arrays.fill(table[row], row);
    }
    float[][] back = new float[rows][columns];
    try (Buffer block = cuda.allocate((long) rows * columns * Float.BYTES)) {
      block.gatherFrom(segments(table));
      block.scatterTo(segments(back));
    }
    out.check("all rows are back", Arrays.deepEquals(table, back), true);
  }

  private static List<MemorySegment> segments(float[][] rows) {
    return Arrays.stream(rows).map(MemorySegment::ofArray).toList();
  }
}
