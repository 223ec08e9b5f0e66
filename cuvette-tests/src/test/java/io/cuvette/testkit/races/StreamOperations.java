package io.cuvette.testkit.races;

import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.Nvtx;
import io.cuvette.Scope;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** Operations of {@code CudaStream} and {@code CudaEvent}. Stateless. */
final class StreamOperations {
  private static final int PATIENCE_SECONDS = 40;

  private StreamOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addStreams(all);
    addCallbacks(all);
    addEvents(all);
    return all;
  }

  private static void addStreams(List<Operation> all) {
    all.add(stream("handle()", CudaStream::handle));
    all.add(stream("priority()", CudaStream::priority));
    all.add(stream("isNonBlocking()", CudaStream::isNonBlocking));
    all.add(stream("isCapturing()", CudaStream::isCapturing));
    all.add(stream("isDone()", CudaStream::isDone));
    all.add(stream("synchronize()", CudaStream::synchronize));
    all.add(stream("record()", stream -> stream.record().close()));
    all.add(both("CudaStream.record(CudaEvent)", CudaStream::record));
    all.add(both("CudaStream.waitFor(CudaEvent)", CudaStream::waitFor));
    all.add(
        stream(
            "waitFor(long)",
            stream -> {
              try (CudaEvent event = stream.device().createEvent()) {
                stream.waitFor(event.handle());
              }
            }));
    all.add(
        Operation.of(
            "CudaStream.waitFor(CudaStream)",
            stage -> {
              CudaStream stream = stage.stream();
              CudaStream other = stage.ended(Closer.OTHER, stage.device.createStream());
              return () -> stream.waitFor(other);
            }));
    all.add(
        stream(
            "use()",
            stream -> {
              try (Scope _ = stream.use()) {
                stream.device().cuda().currentStream();
              }
            }));
    all.add(stream("close()", CudaStream::close));
    all.add(
        Operation.of(
            "Nvtx.name(CudaStream, String)",
            stage -> {
              CudaStream stream = stage.stream();
              return () -> Nvtx.name(stream, "name");
            }));
  }

  private static void addCallbacks(List<Operation> all) {
    all.add(stream("addCallback(Runnable)", stream -> finish(stream.addCallback(() -> {}))));
    all.add(
        stream(
            "addCallback(StreamCallback, Object)",
            stream -> finish(stream.addCallback((_, _) -> {}, ""))));
    all.add(
        stream(
            "addCallback(StreamCallback.WithStatus, Object)",
            stream -> finish(stream.addCallback((_, _, _) -> {}, ""))));
    all.add(stream("onComplete()", stream -> finish(stream.onComplete())));
  }

  private static void addEvents(List<Operation> all) {
    all.add(event("handle()", CudaEvent::handle));
    all.add(event("record()", CudaEvent::record));
    all.add(event("isDone()", CudaEvent::isDone));
    all.add(event("synchronize()", CudaEvent::synchronize));
    all.add(event("close()", CudaEvent::close));
    all.add(both("CudaEvent.record(CudaStream)", (stream, event) -> event.record(stream)));
    all.add(
        Operation.of(
            "CudaEvent.elapsedMillis(CudaEvent, CudaEvent)",
            stage -> {
              CudaEvent start = stage.event();
              CudaEvent end = stage.ended(Closer.OTHER, stage.device.createEvent());
              start.record();
              end.record();
              end.synchronize();
              return () -> CudaEvent.elapsedMillis(start, end);
            }));
    all.add(
        Operation.simulated(
            "CudaEvent.descriptor()",
            stage -> {
              CudaEvent event = stage.event(BufferOperations.interprocess());
              return event::descriptor;
            }));
  }

  private static Operation stream(String method, Consumer<CudaStream> body) {
    return Operation.of(
        "CudaStream." + method,
        stage -> {
          CudaStream stream = stage.stream();
          return () -> body.accept(stream);
        });
  }

  private static Operation event(String method, Consumer<CudaEvent> body) {
    return Operation.of(
        "CudaEvent." + method,
        stage -> {
          CudaEvent event = stage.event();
          return () -> body.accept(event);
        });
  }

  private static Operation both(String method, BiConsumer<CudaStream, CudaEvent> body) {
    return Operation.of(
        method,
        stage -> {
          CudaStream stream = stage.stream();
          CudaEvent event = stage.event();
          return () -> body.accept(stream, event);
        });
  }

  /** A callback that is not reached any more fails, but it ends. */
  static void finish(CompletableFuture<Void> callback) {
    try {
      callback.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof IllegalStateException ended) {
        throw ended;
      }
      throw new AssertionError(e);
    } catch (InterruptedException | TimeoutException e) {
      throw new AssertionError(e);
    }
  }
}
