package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;

/** Events: what was done, what waits for what, and how long it took. Stateless. */
public final class EventsExample {
  private static final long BYTES = 64L << 20;

  private EventsExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    try (CudaStream stream = cuda.currentDevice().createStream();
        CudaStream other = cuda.currentDevice().createStream()) {
      timing(cuda, stream, out);
      order(cuda, stream, other, out);
      mistakes(cuda, stream, out);
    }
    cuda.defaultMemoryPool().freeAllBlocks();
  }

  private static void timing(Cuda cuda, CudaStream stream, Output out) {
    try (CudaEvent start = cuda.currentDevice().createEvent();
        CudaEvent end = cuda.currentDevice().createEvent();
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      start.record(stream);
      buffer.fill((byte) 1, stream);
      end.record(stream);
      end.synchronize();
      double millis = CudaEvent.elapsedMillis(start, end);
      String simulated = cuda.isSimulated() ? " (simulated)" : "";
      out.show("filling 64 MiB took" + simulated, "%.3f ms".formatted(millis));
      out.check("that is more than nothing", millis > 0, true);
      out.check("isDone()", start.isDone() && end.isDone(), true);
    }
  }

  private static void order(Cuda cuda, CudaStream stream, CudaStream other, Output out) {
    out.say("An event without timing is the cheapest way to order two streams.");
    try (CudaEvent ready = cuda.currentDevice().createEvent(EventOptions.ORDER_ONLY);
        Buffer source = cuda.allocate(64, stream);
        Buffer target = cuda.allocate(64, other)) {
      source.fill((byte) 5, stream);
      ready.record(stream);
      other.waitFor(ready);
      target.copyFrom(source, other);
      other.synchronize();
      byte[] back = new byte[64];
      target.copyTo(java.lang.foreign.MemorySegment.ofArray(back));
      out.check("copied after the event", back[0], (byte) 5);
    }
  }

  private static void mistakes(Cuda cuda, CudaStream stream, Output out) {
    try (CudaEvent start = stream.record();
        CudaEvent never = cuda.currentDevice().createEvent()) {
      refused(() -> CudaEvent.elapsedMillis(start, never), out);
    }
    refused(() -> EventOptions.DEFAULTS.withInterprocess(true), out);
  }

  private static void refused(Runnable mistake, Output out) {
    try {
      mistake.run();
    } catch (IllegalStateException | IllegalArgumentException e) {
      out.say("Mistakes are named: " + e.getMessage());
      return;
    }
    throw new WrongResultException("a mistake that was not refused");
  }
}
