package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** Work that is captured once and launched often, and the memory that its graph owns. Stateless. */
public final class GraphExample {
  private static final int COUNT = 64;
  private static final int BYTES = COUNT * Float.BYTES;
  private static final int LAUNCHES = 3;
  private static final float FACTOR = 2.5f;

  private GraphExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    try (CudaModule module = KernelExample.module(cuda);
        MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        Buffer y = pool.allocate(BYTES, stream)) {
      CudaKernel saxpy = module.kernel("saxpy");
      replay(saxpy, pool, stream, y, out);
      update(saxpy, pool, stream, y, out);
      refusals(stream, y, out);
    }
  }

  /** Queues y = 0; x = ones; y += 2.5 x. */
  private static void step(CudaKernel saxpy, MemoryPool pool, CudaStream stream, Buffer y) {
    try (Buffer x = pool.allocate(BYTES, stream)) {
      x.fillInts(Float.floatToIntBits(1f), stream);
      y.fill((byte) 0, stream);
      stream.launch(saxpy, LaunchConfig.forElements(COUNT, COUNT), FACTOR, x, y, COUNT);
    }
  }

  private static void replay(
      CudaKernel saxpy, MemoryPool pool, CudaStream stream, Buffer y, Output out) {
    out.say("A capture runs nothing: the work becomes a graph, and so does its memory.");
    try (CudaGraph graph = stream.capture(() -> step(saxpy, pool, stream, y));
        CudaGraphExec executable = graph.instantiate()) {
      out.check("bytes that the graph keeps", pool.stats().graphBytes() >= BYTES, true);
      try (Buffer other = pool.allocate(BYTES, stream)) {
        other.fillInts(
            Float.floatToIntBits(-1f),
            stream); // not the memory of x, although that buffer is closed
        for (int i = 0; i < LAUNCHES; i++) {
          executable.launch(stream);
        }
        out.check("y after " + LAUNCHES + " launches", all(y, stream, FACTOR), true);
        out.check("the other buffer", all(other, stream, -1f), true);
      }
    }
  }

  private static void update(
      CudaKernel saxpy, MemoryPool pool, CudaStream stream, Buffer y, Output out) {
    out.say("An executable takes over what a graph of the same form does.");
    try (Buffer next = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> step(saxpy, pool, stream, y));
        CudaGraphExec executable = graph.instantiate()) {
      try (CudaGraph other = stream.capture(() -> step(saxpy, pool, stream, next))) {
        executable.update(other);
      }
      executable.launch(stream);
      out.check("the other y", all(next, stream, FACTOR), true);
    }
  }

  private static void refusals(CudaStream stream, Buffer y, Output out) {
    out.say("What waits cannot be captured; it is refused, and the capture goes on.");
    CudaGraph graph =
        stream.capture(() -> {
          try {
            stream.synchronize();
          } catch (IllegalStateException e) {
            out.check("refused", String.valueOf(e.getMessage()).startsWith("synchronize"), true);
          }
          y.fill((byte) 0, stream);
        });
    graph.close();
    out.check("capturing after it", stream.isCapturing(), false);
  }

  private static boolean all(Buffer buffer, CudaStream stream, float expected) {
    float[] values = new float[COUNT];
    stream.synchronize();
    buffer.copyTo(MemorySegment.ofArray(values));
    float[] all = new float[COUNT];
    Arrays.fill(all, expected);
    return Arrays.equals(values, all);
  }
}
