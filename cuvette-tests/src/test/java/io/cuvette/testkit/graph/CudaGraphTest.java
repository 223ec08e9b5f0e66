package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphOptions;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Captures, what is instantiated from them, launches and updates. */
class CudaGraphTest {
  private static final int BYTES = 1 << 16;
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);

  @CudaTest
  void capturedWork_doesNotRun_untilTheGraphIsLaunched(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      try (CudaGraph graph = stream.capture(() -> buffer.fill((byte) 2, stream));
          CudaGraphExec executable = graph.instantiate()) {
        stream.synchronize();
        assertThat(Bytes.areAll(buffer, 1)).isTrue();
        for (int i = 0; i < 3; i++) {
          buffer.fill((byte) 3, stream);
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.areAll(buffer, 2)).isTrue();
        }
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void bodyRuns_withTheStreamCurrent(MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      CudaGraph graph =
          stream.capture(() -> {
            assertThat(stream.isCapturing()).isTrue();
            try (Buffer inside = pool.allocate(BYTES)) {
              assertThat(inside.stream()).isEqualTo(stream);
              inside.fill((byte) 2, stream);
              inside.copyTo(buffer, stream);
            }
            assertThatThrownBy(() -> buffer.fill((byte) 1))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("fill: ")
                .hasMessageContaining("expected: the form that takes a stream");
          });
      assertThat(stream.isCapturing()).isFalse();
      try (graph;
          CudaGraphExec executable = graph.instantiate()) {
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(buffer, 2)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void forkedStreams_takePart(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream fork) {
    try (Buffer first = pool.allocate(BYTES, stream);
        Buffer second = pool.allocate(BYTES, stream);
        CudaGraph graph =
            stream.capture(() -> {
              fork.waitFor(stream);
              first.fill((byte) 4, stream);
              second.fill((byte) 5, fork);
              stream.waitFor(fork);
              first.copyTo(second, stream);
            });
        CudaGraphExec executable = graph.instantiate()) {
      executable.upload(stream);
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(second, 4)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void bodyThatThrows_endsTheCapture(MemoryPool pool, @NonBlocking CudaStream stream) {
    IOException thrown = new IOException("of the body");
    try (Buffer buffer = pool.allocate(BYTES, stream)) {
      assertThatThrownBy(() ->
              stream.capture(() -> {
                buffer.fill((byte) 1, stream);
                throw thrown;
              }))
          .isSameAs(thrown)
          .satisfies(e -> assertThat(e.getSuppressed()).isEmpty());
      assertThat(stream.isCapturing()).isFalse();
      buffer.fill((byte) 2, stream);
      stream.synchronize();
      assertThat(Bytes.areAll(buffer, 2)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void bodyThatClosesItsStream_leavesNothing(Cuda cuda) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    assertThatThrownBy(() -> stream.capture(stream::close))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }

  @CudaTest
  void captureLeftOpen_endsWithItsStream(Cuda cuda) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    stream.beginCapture(CaptureOptions.DEFAULTS);
    assertThat(stream.isCapturing()).isTrue();
    stream.close();
  }

  @CudaTest
  void captureOfAnyMode_isNotInvalidatedByTheLibrary(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    for (CaptureMode mode : CaptureMode.values()) {
      try (CudaGraph graph =
          stream.capture(
              CaptureOptions.DEFAULTS.withMode(mode),
              () -> {
                try (Buffer other = cuda.allocate(BYTES)) {
                  other.fill((byte) 1, stream);
                }
                try (CudaStream made = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
                    Buffer beside = pool.allocate(BYTES, made)) {
                  beside.fill((byte) 1, made);
                  made.synchronize();
                }
              })) {
        graph.instantiate().close();
      }
    }
    Graph.awaitGone(cuda.defaultMemoryPool(), stream);
  }

  @CudaTest
  void nullStream_isNotCaptured(Cuda cuda) {
    assertThatThrownBy(() -> cuda.device(0).nullStream().capture(() -> {}))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("cannot be captured")
        .hasMessageContaining("expected: another stream");
  }

  @CudaTest
  void captureInACapture_isRefused_andTheFirstGoesOn(@NonBlocking CudaStream stream) {
    stream
        .capture(() ->
            assertThatThrownBy(() -> stream.beginCapture(CaptureOptions.DEFAULTS))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is capturing a graph already"))
        .close();
  }

  @CudaTest
  void endWithoutBegin_isRefused(@NonBlocking CudaStream stream) {
    assertThatThrownBy(stream::endCapture)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is not capturing");
  }

  @CudaTest
  void endInAJoinedStream_isRefused_andTheCaptureGoesOn(
      @NonBlocking CudaStream stream, @NonBlocking CudaStream fork) {
    stream
        .capture(() -> {
          fork.waitFor(stream);
          assertThatThrownBy(fork::endCapture)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("began in another stream");
          stream.waitFor(fork);
        })
        .close();
  }

  @CudaTest
  void streamThatWasNotJoined_isAnError_andBothStreamsGoOn(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream fork) {
    try (Buffer buffer = pool.allocate(BYTES, stream)) {
      assertThatThrownBy(() ->
              stream.capture(() -> {
                fork.waitFor(stream);
                buffer.fill((byte) 1, fork);
              }))
          .isInstanceOfSatisfying(
              CudaException.class,
              e -> assertThat(e.status()).isEqualTo(CudaStatus.STREAM_CAPTURE_UNJOINED))
          .hasMessageContaining("expected: waitFor of that stream");
      assertThat(stream.isCapturing() || fork.isCapturing()).isFalse();
      buffer.fill((byte) 2, fork);
      fork.synchronize();
      assertThat(Bytes.areAll(buffer, 2)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void modesWithAThread_areRefusedOnVirtualThreads(@NonBlocking CudaStream stream)
      throws Exception {
    List<Throwable> thrown = new ArrayList<>();
    Thread.ofVirtual()
        .start(() -> {
          try {
            stream.beginCapture(CaptureOptions.DEFAULTS.withMode(CaptureMode.GLOBAL));
          } catch (IllegalStateException e) {
            thrown.add(e);
          }
        })
        .join();
    assertThat(thrown).singleElement().asString().contains("GLOBAL").contains("expected: RELAXED");
    assertThat(stream.isCapturing()).isFalse();
  }

  @CudaTest
  void whatIsClosed_isNamed(@NonBlocking CudaStream stream) {
    CudaGraph graph = stream.capture(() -> {});
    CudaGraphExec executable = graph.instantiate();
    graph.close();
    graph.close();
    assertThatThrownBy(graph::instantiate)
        .hasMessageContaining("graph 0x")
        .hasMessageEndingWith("is closed");
    assertThatThrownBy(() -> executable.update(graph)).hasMessageEndingWith("is closed");
    executable.launch(stream);
    executable.close();
    executable.close();
    assertThatThrownBy(() -> executable.launch(stream))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("executable graph 0x");
    assertThatThrownBy(() -> executable.upload(stream)).hasMessageEndingWith("is closed");
    assertThatThrownBy(executable::handle).hasMessageEndingWith("is closed");
  }

  @CudaTest
  void executableInACapture_isRefused_andTheCaptureGoesOn(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> buffer.fill((byte) 1, stream));
        CudaGraphExec executable = graph.instantiate()) {
      stream
          .capture(() -> {
            assertThatThrownBy(() -> executable.launch(stream))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("launch: ")
                .hasMessageContaining("is capturing a graph");
            assertThatThrownBy(() -> executable.upload(stream))
                .isInstanceOf(IllegalStateException.class);
          })
          .close();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void update_takesOverWhatTheNodesDo_andTheMemory(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> buffer.fill((byte) 1, stream));
        CudaGraphExec executable = graph.instantiate()) {
      Buffer other = pool.allocate(BYTES, stream);
      other.fill((byte) 9, stream);
      try (CudaGraph next = stream.capture(() -> other.copyTo(buffer, stream))) {
        assertThatThrownBy(() -> executable.update(next))
            .isInstanceOfSatisfying(
                CudaException.class,
                e -> assertThat(e.status()).isEqualTo(CudaStatus.GRAPH_EXEC_UPDATE_FAILURE))
            .hasMessageContaining("another type")
            .hasMessageContaining("the executable is as it was");
      }
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(buffer, 1)).isTrue();
      try (CudaGraph next = stream.capture(() -> other.fill((byte) 7, stream))) {
        executable.update(next);
      }
      other.close(); // the executable has it still
      try (Buffer taken = pool.allocate(BYTES, stream)) {
        taken.fill((byte) 3, stream);
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(taken, 3)).isTrue();
        assertThat(Bytes.areAll(buffer, 1)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void update_withAnotherTopology_isRefused(MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph one = stream.capture(() -> buffer.fill((byte) 1, stream));
        CudaGraph two =
            stream.capture(() -> {
              buffer.fill((byte) 2, stream);
              buffer.fill((byte) 3, stream);
            });
        CudaGraphExec executable = one.instantiate()) {
      assertThatThrownBy(() -> executable.update(two))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("other nodes or edges");
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(buffer, 1)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void copy_hasTheSameWorkAndMemory(MemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer inside = pool.allocate(BYTES, stream);
    try (Buffer result = pool.allocate(BYTES, stream)) {
      CudaGraph graph =
          stream.capture(() -> {
            inside.fill((byte) 5, stream);
            inside.copyTo(result, stream);
          });
      inside.close();
      CudaGraph copy = graph.copy();
      graph.close();
      try (copy;
          CudaGraphExec executable = copy.instantiate(GraphOptions.DEFAULTS);
          Buffer taken = pool.allocate(BYTES, stream)) {
        taken.fill((byte) 6, stream);
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(result, 5)).isTrue();
        assertThat(Bytes.areAll(taken, 6)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void dot_namesTheNodes(MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> buffer.fill((byte) 1, stream))) {
      assertThat(graph.toDot(false)).startsWith("digraph").contains("MEMSET");
      assertThat(graph.toDot(true).length()).isGreaterThan(graph.toDot(false).length());
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void launchInFlight_keepsItsMemory_afterAllIsClosed(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (Buffer result = pool.allocate(BYTES, stream)) {
      try (CudaGraph graph =
              stream.capture(() -> {
                try (Buffer inside = pool.allocate(BYTES, stream)) {
                  inside.fill((byte) 5, stream);
                  inside.copyTo(result, stream);
                }
              });
          CudaGraphExec executable = graph.instantiate()) {
        executable.launch(stream);
      }
      try (Buffer taken = pool.allocate(BYTES, other)) {
        taken.fill((byte) 6, other);
        stream.synchronize();
        assertThat(Bytes.areAll(result, 5)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(seeds = 12)
  void memoryComesBackBehindTheLastLaunch_withoutAWaitForIt(
      Cuda cuda, MemoryPool pool, PinnedMemoryPool pinned, @NonBlocking CudaStream stream) {
    try (Buffer target = pool.allocate(BYTES, stream)) {
      long address;
      try (Buffer source = pinned.allocate(BYTES)) {
        address = source.address();
        try (CudaGraph graph = stream.capture(() -> source.copyTo(target, stream));
            CudaGraphExec executable = graph.instantiate()) {
          executable.launch(stream);
        }
      }
      long start = System.nanoTime();
      while (pinned.stats().pendingBytes() > 0 && System.nanoTime() - start < PATIENCE_NANOS) {
        LockSupport.parkNanos(1_000_000);
        cuda.leaksFound();
      }
      try (Buffer taken = pinned.allocate(BYTES)) {
        assertThat(taken.address()).isEqualTo(address);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(simulatedOnly = true)
  void upload_isACallOfTheDriver_inTheStream(
      ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    driver.note("graphUpload", call -> "stream %d".formatted(call.number("stream")));
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> buffer.fill((byte) 1, stream));
        CudaGraphExec executable = graph.instantiate()) {
      executable.upload(stream);
      assertThat(driver.takeNotes()).containsExactly("stream " + stream.handle());
      executable.launch(stream);
      assertThat(driver.takeNotes()).isEmpty();
      stream.synchronize();
    }
    Graph.awaitGone(pool, stream);
  }

  /** It may be on another carrier when it ends its capture, which only that mode allows. */
  @CudaTest
  void captureInAVirtualThread_isRelaxed_orRefused(@NonBlocking CudaStream stream) {
    CompletableFuture.runAsync(
            () -> {
              for (CaptureMode mode : CaptureMode.values()) {
                CaptureOptions options = CaptureOptions.DEFAULTS.withMode(mode);
                if (mode == CaptureMode.RELAXED) {
                  stream.capture(options, () -> {}).close();
                } else {
                  assertThatThrownBy(() -> stream.capture(options, () -> {}))
                      .isInstanceOf(IllegalStateException.class)
                      .hasMessage(
                          "beginCapture: mode %s on a virtual thread"
                              + " (expected: RELAXED, or a platform thread)",
                          mode);
                }
              }
            },
            Thread.ofVirtual()::start)
        .join();
    assertThat(stream.isCapturing()).isFalse();
  }

  @CudaTest(tidy = false)
  void graphsThatAreLeftOpen_endWithTheCuda(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    CudaGraph graph = stream.capture(() -> {});
    CudaGraphExec executable = graph.instantiate();
    stream.close();
    long before = driver.count("graphDestroy");
    cuda.close();
    assertThat(driver.count("graphDestroy")).isEqualTo(before + 1);
    assertThat(driver.count("graphExecDestroy")).isEqualTo(1);
    graph.close();
    executable.close();
    assertThat(driver.count("graphDestroy")).isEqualTo(before + 1);
    assertThat(driver.count("graphExecDestroy")).isEqualTo(1);
  }
}
