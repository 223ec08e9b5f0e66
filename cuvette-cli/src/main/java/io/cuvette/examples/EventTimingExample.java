package io.cuvette.examples;

import static io.cuvette.array.ElementType.FLOAT64;

import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.NdArray;

/** How long work takes on the device, by two events around it. Stateless. */
public final class EventTimingExample {
  private EventTimingExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    long side = cuda.isSimulated() ? 40 : 1000;
    String clock = cuda.isSimulated() ? " (simulated)" : "";
    try (CudaStream stream = cuda.currentDevice().createStream();
        Scope _ = stream.use();
        CudaEvent start = cuda.currentDevice().createEvent();
        CudaEvent between = cuda.currentDevice().createEvent();
        CudaEvent end = cuda.currentDevice().createEvent();
        CudaArray a = CudaArrays.of(cuda).ones(FLOAT64, side, side);
        CudaArray b = CudaArrays.of(cuda).empty(FLOAT64, side, side)) {
      NdArray _ = a.matmul(a, b); // what is loaded once is there afterwards
      start.record();
      NdArray _ = a.matmul(a, b);
      between.record();
      a.copyFrom(b);
      end.record();
      end.synchronize();
      out.say("%,d x %,d doubles, timed on the device%s:".formatted(side, side, clock));
      double product = CudaEvent.elapsedMillis(start, between);
      double copy = CudaEvent.elapsedMillis(between, end);
      out.show("product", "%.3f ms".formatted(product));
      out.show("copy", "%.3f ms".formatted(copy));
      out.check("neither is negative", product >= 0 && copy >= 0, true);
      out.check("each element", a.toArray(double[][].class)[1][2], (double) side);
    }
    cuda.defaultMemoryPool().freeAllBlocks();
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
  }
}
