package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What a capturing stream refuses, before the driver is asked and the capture lost. */
class CapturingStreamTest {
  private static final int BYTES = 4096;

  private static CudaStream stream(Cuda cuda) {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  @CudaTest
  void questionsAndWaits_areRefused_andTheCaptureGoesOn(Cuda cuda) {
    try (CudaStream stream = stream(cuda)) {
      List<ThrowingCallable> calls =
          List.of(stream::isDone, stream::synchronize, () -> stream.addCallback(() -> {}));
      for (ThrowingCallable call : calls) {
        Graph.of(
                stream,
                () ->
                    assertThatThrownBy(call)
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("is capturing a graph"))
            .close();
      }
    }
  }

  @CudaTest
  void waitForTheDevice_waitsForTheOtherStreams(Cuda cuda) {
    long foreign = cuda.driver().streamCreateWithPriority(0, 1, 0);
    long memory = cuda.driver().memAlloc(0, BYTES);
    try (CudaStream captured = stream(cuda);
        CudaStream other = stream(cuda);
        Buffer buffer = cuda.allocate(BYTES, other)) {
      Graph.of(
              captured,
              0,
              () -> {
                for (int i = 0; i < 100; i++) {
                  buffer.fill((byte) i, other);
                  cuda.driver().memsetD8Async(0, memory, (byte) i, BYTES, foreign);
                }
                cuda.device(0).synchronize();
                assertThat(other.isDone()).isTrue();
                assertThat(cuda.driver().streamQuery(0, foreign)).isTrue();
              })
          .close();
    }
    cuda.driver().memFree(0, memory);
    cuda.driver().streamDestroy(0, foreign);
  }

  @CudaTest
  void waitForTheDevice_waitsForStreamsThatWereClosed(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(BYTES)) {
      buffer.fill((byte) 0);
      CudaStream stream = stream(cuda);
      Gate gate = Gate.on(stream);
      buffer.fill((byte) 3, stream);
      stream.close();
      Thread opener = Thread.ofPlatform().start(gate::open);
      cuda.device(0).synchronize();
      assertThat(Bytes.of(buffer)).containsOnly(3);
      join(opener);
    }
  }

  /** A stream that somebody began to capture and closes takes its capture along. */
  @CudaTest
  void closeOfACapturingStream_endsTheCapture_andLosesNothing(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      CudaStream stream = stream(cuda);
      cuda.driver().streamBeginCapture(0, stream.handle(), 2);
      pool.allocate(BYTES, stream).close();
      stream.close();
      assertThat(stream.isClosed()).isTrue();
      Graph.awaitGone(pool, cuda.device(0).nullStream());
    }
  }

  @CudaTest
  void closeOfAStreamThatJoinedACapture_leavesThatValid(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream origin = stream(cuda)) {
      Graph graph =
          Graph.of(
              origin,
              () -> {
                CudaStream fork = stream(cuda);
                fork.waitFor(origin);
                Buffer used = pool.allocate(BYTES, fork);
                used.fill((byte) 1, fork);
                used.close();
                origin.waitFor(fork);
                fork.close();
                assertThat(fork.isClosed()).isTrue();
              });
      graph.launch(origin);
      origin.synchronize();
      graph.close();
      Graph.awaitGone(pool, origin);
    }
  }

  @CudaTest
  void eventsOfOthers_areWaitedFor_withoutHarm(Cuda cuda) {
    try (CudaStream captured = stream(cuda);
        CudaStream other = stream(cuda);
        CudaStream third = stream(cuda);
        CudaEvent before = other.record()) {
      Graph.of(
              captured,
              1,
              () -> {
                assertThat(captured.handle()).isNotZero();
                third.waitFor(before);
                third.waitFor(other);
                third.synchronize();
                before.synchronize();
              })
          .close();
    }
  }

  /** The null stream takes turns with a blocking stream, and is unusable while that captures. */
  @CudaTest
  void workInTheNullStream_besideABlockingCapture_isRefused(Cuda cuda) {
    CudaStream nullStream = cuda.device(0).nullStream();
    try (CudaStream blocking = cuda.device(0).createStream();
        Buffer buffer = cuda.allocate(BYTES)) {
      List<ThrowingCallable> calls =
          List.of(
              () -> buffer.fill((byte) 1),
              () -> buffer.fill((byte) 1, nullStream),
              nullStream::synchronize,
              nullStream::isDone,
              nullStream::record,
              () -> nullStream.waitFor(nullStream));
      for (ThrowingCallable call : calls) {
        Graph.of(
                blocking,
                () ->
                    assertThatThrownBy(call)
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("takes turns with the null stream"))
            .close();
      }
    }
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
