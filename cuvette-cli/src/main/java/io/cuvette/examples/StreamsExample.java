package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;

/** Work on several streams: current streams, order between streams, callbacks. Stateless. */
public final class StreamsExample {
  private static final int BYTES = 1 << 20;

  private StreamsExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    try (CudaStream one = cuda.currentDevice().createStream();
        CudaStream two = cuda.currentDevice().createStream()) {
      concurrent(cuda, one, two, out);
      ordered(cuda, one, two, out);
      callbacks(one, out);
    }
    cuda.currentDevice().synchronize(); // what several streams used is free once all are done
    cuda.defaultMemoryPool().freeAllBlocks();
    out.check("held", cuda.defaultMemoryPool().totalBytes(), 0L);
  }

  private static void concurrent(Cuda cuda, CudaStream one, CudaStream two, Output out) {
    out.say("Each scope makes its stream current; the work of both may run at once.");
    Buffer first;
    Buffer second;
    try (Scope _ = one.use()) {
      out.check("current stream", cuda.currentStream(), one);
      first = cuda.allocate(BYTES);
    }
    try (first;
        Scope _ = two.use()) {
      second = cuda.allocate(BYTES);
      try (second) {
        first.fill((byte) 1, one);
        second.fill((byte) 2, two);
        one.synchronize();
        two.synchronize();
        out.check("first", lastByte(first), (byte) 1);
        out.check("second", lastByte(second), (byte) 2);
      }
    }
    out.check("current stream after it", cuda.currentStream().handle(), 0L);
  }

  private static void ordered(Cuda cuda, CudaStream one, CudaStream two, Output out) {
    out.say("Stream two waits for what was queued on stream one, the host does not.");
    try (Buffer source = cuda.allocate(BYTES, one);
        Buffer target = cuda.allocate(BYTES, two)) {
      source.fill((byte) 3, one);
      two.waitFor(one);
      target.copyFrom(source, two);
      two.synchronize();
      out.check("copied after it was filled", lastByte(target), (byte) 3);
      out.check("isDone()", two.isDone(), true);
    }
  }

  private static void callbacks(CudaStream stream, Output out) {
    out.say("Callbacks run in order of the stream, on a thread of the library.");
    AtomicReference<String> called = new AtomicReference<>("");
    CompletableFuture<Void> done =
        stream.addCallback((on, argument) -> called.set(argument), "callback");
    done.join();
    out.check("called", called.get(), "callback");
    CompletableFuture<Void> failed =
        stream.addCallback(() -> {
          throw new IllegalStateException("thrown by a callback");
        });
    Throwable thrown = failed.handle((_, e) -> e).join();
    out.check("its exception arrives", String.valueOf(thrown.getMessage()), "thrown by a callback");
    stream.onComplete().join();
  }

  private static byte lastByte(Buffer buffer) {
    byte[] last = new byte[1];
    buffer.slice(BYTES - 1).copyTo(MemorySegment.ofArray(last));
    return last[0];
  }
}
