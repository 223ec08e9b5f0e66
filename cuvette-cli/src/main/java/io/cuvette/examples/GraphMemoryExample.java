package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphMemory;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import java.lang.foreign.MemorySegment;

/** One graph for each batch size, which all use the same memory. Stateless. */
public final class GraphMemoryExample {
  private static final int ITEM = 1 << 16;

  private static final int LARGE = 127;
  private static final int MEDIUM = 16;
  private static final int SMALL = 1;

  private GraphMemoryExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    long alone = alone(cuda);
    out.show("bytes that the largest holds alone", alone);
    out.show("bytes of all, each with its own memory", together(cuda, out, false));
    long shared = together(cuda, out, true);
    out.show("bytes of all in one GraphMemory", shared);
    out.check("as much as the largest", shared, alone);
  }

  private static long alone(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        Buffer result = pool.allocate(ITEM, stream)) {
      long before = pool.totalBytes();
      try (CudaGraph _ = captured(CaptureOptions.DEFAULTS, pool, stream, LARGE, result)) {
        return pool.totalBytes() - before;
      }
    }
  }

  /** Captures a step for each batch, the largest first, and launches all of them in turn. */
  private static long together(Cuda cuda, Output out, boolean sharing) {
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        Buffer result = pool.allocate(ITEM, stream);
        GraphMemory memory = cuda.currentDevice().createGraphMemory()) {
      long before = pool.totalBytes();
      CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(sharing ? memory : null);
      try (CudaGraph ofLarge = captured(options, pool, stream, LARGE, result);
          CudaGraphExec large = ofLarge.instantiate();
          CudaGraph ofMedium = captured(options, pool, stream, MEDIUM, result);
          CudaGraphExec medium = ofMedium.instantiate();
          CudaGraph ofSmall = captured(options, pool, stream, SMALL, result);
          CudaGraphExec small = ofSmall.instantiate()) {
        large.launch(stream);
        out.check("result of the largest", lastByte(result, stream), (byte) LARGE);
        small.launch(stream);
        out.check("result of the smallest", lastByte(result, stream), (byte) SMALL);
        medium.launch(stream);
        large.launch(stream);
        out.check("result of the largest again", lastByte(result, stream), (byte) LARGE);
        return pool.totalBytes() - before;
      }
    }
  }

  private static CudaGraph captured(
      CaptureOptions options, MemoryPool pool, CudaStream stream, int batch, Buffer result) {
    return stream.capture(options, () -> step(pool, stream, batch, result));
  }

  private static void step(MemoryPool pool, CudaStream stream, int batch, Buffer result) {
    long bytes = (long) batch * ITEM;
    try (Buffer first = pool.allocate(bytes, stream);
        Buffer second = pool.allocate(bytes, stream)) {
      first.fill((byte) batch, stream);
      first.copyTo(second, stream);
      second.slice(0, ITEM).copyTo(result, stream);
    }
  }

  private static byte lastByte(Buffer buffer, CudaStream stream) {
    byte[] bytes = new byte[ITEM];
    stream.synchronize();
    buffer.copyTo(MemorySegment.ofArray(bytes));
    return bytes[ITEM - 1];
  }
}
