package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.CaptureBetween;
import io.cuvette.testkit.support.Graph;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;

/**
 * A capture begins between any two calls of the driver that an operation on the same stream makes,
 * and ends between any two later ones. It stays valid, and nothing waits for ever.
 */
class CaptureAtAnyMomentTest {
  private static final int MOST_CALLS = 300;
  private static final int BYTES = 4096;
  private static final long PATIENCE_SECONDS = 40;

  private final CaptureBetween between = new CaptureBetween();

  private Cuda open(Subject subject) {
    return subject.open(options -> options.withDecorator(between::over));
  }

  /** Tries every pair of moments. */
  private void atAnyMoment(CudaStream stream, Consumer<CudaStream> operation, Runnable after) {
    int most = once(stream, operation, MOST_CALLS, MOST_CALLS);
    after.run();
    for (int begin = 0; begin < most; begin++) {
      int calls = most;
      for (int end = begin + 1; end <= calls; end++) {
        calls = once(stream, operation, begin, end);
        after.run();
      }
    }
  }

  private int once(CudaStream stream, Consumer<CudaStream> operation, int begin, int end) {
    try {
      int calls =
          between.around(stream, begin, end, () -> refusedOr(() -> operation.accept(stream)));
      assertThat(calls).isLessThan(MOST_CALLS);
      return calls;
    } catch (RuntimeException e) {
      throw new AssertionError("a capture from call %d to %d".formatted(begin, end), e);
    }
  }

  /** What is refused for the capture says so, and nothing else fails. */
  private static void refusedOr(Runnable operation) {
    try {
      operation.run();
    } catch (IllegalStateException e) {
      assertThat(e).hasMessageContaining("is capturing a graph");
    }
  }

  private static CudaStream stream(Cuda cuda) {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  @CudaTest
  @Timeout(60)
  void callback_runsOrIsRefused_andHoldsNothingUp(Subject subject) {
    Cuda cuda = open(subject);
    try (CudaStream stream = stream(cuda)) {
      List<CompletableFuture<Void>> added = new ArrayList<>();
      atAnyMoment(
          stream,
          on -> added.add(on.addCallback(() -> {})),
          () -> {
            stream.synchronize();
            CompletableFuture.allOf(added.toArray(CompletableFuture[]::new))
                .orTimeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                .join();
          });
      assertThat(added).isNotEmpty();
    }
  }

  @CudaTest
  @Timeout(60)
  void futureOfTheWork_isDone_orRefused(Subject subject) {
    Cuda cuda = open(subject);
    try (CudaStream stream = stream(cuda)) {
      List<CompletableFuture<Void>> added = new ArrayList<>();
      atAnyMoment(
          stream,
          on -> added.add(on.onComplete()),
          () ->
              CompletableFuture.allOf(added.toArray(CompletableFuture[]::new))
                  .orTimeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                  .join());
    }
  }

  @CudaTest
  @Timeout(60)
  void questionsAndWaits_leaveItValid(Subject subject) {
    Cuda cuda = open(subject);
    try (CudaStream stream = stream(cuda);
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      for (Consumer<CudaStream> operation :
          List.<Consumer<CudaStream>>of(
              CudaStream::isDone,
              CudaStream::synchronize,
              CudaStream::isCapturing,
              on -> on.device().synchronize())) {
        atAnyMoment(stream, operation, () -> buffer.fill((byte) 1, stream));
      }
    }
  }

  /** A capture in the way is no reason to return before. */
  @CudaTest(seeds = 4)
  @Timeout(60)
  void workThatWasWaitedFor_isDone(Subject subject) {
    Cuda cuda = open(subject);
    try (CudaStream stream = stream(cuda);
        PinnedBuffer buffer = cuda.directPinned().allocate(BYTES)) {
      byte[] value = {1};
      buffer.fill(value[0], stream);
      atAnyMoment(
          stream,
          on -> {
            on.synchronize();
            assertThat(buffer.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo(value[0]);
          },
          () -> {
            stream.synchronize();
            value[0]++;
            buffer.fill(value[0], stream);
          });
    }
  }

  /** Memory that was used in the capture is the graph's; {@code after} has dropped that. */
  @CudaTest
  @Timeout(60)
  void memory_isAllocatedUsedAndClosed(Subject subject) {
    Cuda cuda = open(subject);
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = stream(cuda);
        CudaStream other = stream(cuda)) {
      atAnyMoment(stream, on -> use(pool.allocate(BYTES, on), on, on), () -> {});
      atAnyMoment(stream, on -> use(pool.allocate(BYTES, other), on, other), () -> {});
      atAnyMoment(stream, on -> use(pool.allocate(BYTES, on), other, on), () -> {});
      atAnyMoment(
          stream, on -> use(MemoryResource.direct().allocate(BYTES, on), on, other), () -> {});
      stream.synchronize();
      other.synchronize();
      Graph.awaitGone(pool, stream);
      assertThat(pool.stats().usedBytes()).isZero();
      pool.assertConsistent();
    }
  }

  private static void use(Buffer buffer, CudaStream one, CudaStream other) {
    try (buffer) {
      buffer.slice(0, BYTES / 2).fill((byte) 1, one);
      buffer.slice(BYTES / 2, BYTES / 2).fill((byte) 2, other);
    }
  }

  @CudaTest
  @Timeout(60)
  void events_areRecordedAndAsked(Subject subject) {
    Cuda cuda = open(subject);
    try (CudaStream stream = stream(cuda);
        CudaEvent event = cuda.device(0).createEvent()) {
      atAnyMoment(
          stream,
          on -> {
            event.record(on);
            try {
              boolean _ = event.isDone();
              event.synchronize();
            } catch (CudaException e) { // of a capture that is over by now
              assertThat(e).hasMessageContaining("recorded in a capture");
            }
          },
          () -> {});
    }
  }
}
