package io.cuvette.examples;

import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.array.ArrayModule;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.HostArray;
import io.cuvette.array.HostArrays;
import io.cuvette.array.NdArray;
import io.cuvette.array.Order;
import io.cuvette.array.Range;

/**
 * Arrays on the device and in page-locked memory, their views, and a program for both. Stateless.
 */
public final class ArraysExample {
  private static final long SIDE = 1000;

  private ArraysExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    MemoryPool pool = cuda.defaultMemoryPool();
    pool.freeAllBlocks();
    CudaDevice device = cuda.device(cuda.deviceCount() - 1);
    CudaArrays cp = CudaArrays.of(cuda);

    out.say("1,000 x 1,000 zeros on the last device, from the current allocator:");
    try (Scope _ = device.use();
        CudaArray zeros = cp.zeros(FLOAT64, SIDE, SIDE)) {
      out.check("zeros.device().id()", zeros.device().id(), device.id());
      out.check("zeros.byteSize()", zeros.byteSize(), 8_000_000L);
      out.check("pool.usedBytes()", pool.stats(device).usedBytes(), 8_000_000L);
    }
    out.check("closed: pool.usedBytes()", pool.stats(device).usedBytes(), 0L);

    views(cp, out);
    transfers(cuda, out);

    out.say("One program text, on the device and on the host:");
    try (CudaArray there = cp.array(new float[][] {{1, 2}, {3, 4}});
        HostArray here = HostArrays.of(cuda).array(new float[][] {{1, 2}, {3, 4}})) {
      out.check("frame of a CudaArray", sumOfFrame(there), 10.0);
      out.check("frame of a HostArray", sumOfFrame(here), 10.0);
    }
    pool.freeAllBlocks();
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
  }

  private static void views(CudaArrays cp, Output out) {
    out.say("Views share the memory of the array they were taken from:");
    try (CudaArray numbers = cp.arange(FLOAT32, 12)) {
      CudaArray table = numbers.reshape(3, 4);
      CudaArray column = table.transpose().slice(Range.at(1));
      out.check("second column", column.toArray(float[].class)[2], 9f);
      column.fill(0);
      out.check("numbers[9], after the column was cleared", numbers.toArray(float[].class)[9], 0f);
      out.check("column.isView()", column.isView(), true);
    }
  }

  /** To the device and back: waiting, and on a stream. */
  private static void transfers(Cuda cuda, Output out) {
    long rows = cuda.isSimulated() ? 100 : 10_000;
    long columns = cuda.isSimulated() ? 10 : 1000;
    out.say("%,d x %,d doubles to the device, waited for:".formatted(rows, columns));
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        HostArray numbers = HostArrays.of(cuda).arange(FLOAT64, rows * columns);
        CudaArray there = CudaArrays.of(cuda).asarray(numbers.reshape(rows, columns))) {
      out.check(
          "last element",
          there.slice(Range.at(-1)).toArray(double[].class)[(int) columns - 1],
          (double) (rows * columns - 1));

      out.say("The same on a stream, into an array like it, and turned back to the host:");
      try (CudaArray buffer = CudaArrays.of(cuda).on(stream).emptyLike(there)) {
        buffer.copyFrom(numbers.reshape(rows, columns), stream); // queued: the source is pinned
        try (HostArray back = buffer.transpose().toHost(stream, Order.C, null, false)) {
          stream.synchronize(); // until here the elements are not there
          out.check("shape()[0]", back.shape()[0], columns);
          out.check("back[1, 2]", back.getDouble(1, 2), 2.0 * columns + 1);
        }
      }
    }
  }

  /** The sum of an array with a frame of zeros around it, wherever it is. */
  private static double sumOfFrame(NdArray a) {
    ArrayModule<? extends NdArray> xp = ArrayModule.of(a);
    try (NdArray framed = xp.zeros(a.type(), a.shape()[0] + 2, a.shape()[1] + 2)) {
      framed.slice(Range.of(1, -1), Range.of(1, -1)).copyFrom(a);
      try (HostArray host = framed.toHost()) {
        double sum = 0;
        for (long i = 0; i < framed.shape()[0]; i++) {
          for (long j = 0; j < framed.shape()[1]; j++) {
            sum += host.getDouble(i, j);
          }
        }
        return sum;
      }
    }
  }
}
