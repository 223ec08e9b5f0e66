package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** A block of a caching pool that a graph uses is nobody else's as long as the graph can run. */
class CapturedMemoryTest {
  private static final long BYTES = 4096;

  private static CudaStream stream(Cuda cuda) {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  /** Takes all that the pool could give out of what it holds, and more. */
  private static void checkNotHandedOut(MemoryPool pool, CudaStream stream, Buffer used) {
    List<Buffer> taken = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      taken.add(pool.allocate(BYTES, stream));
    }
    for (Buffer other : taken) {
      assertThat(Math.abs(other.address() - used.address())).isGreaterThanOrEqualTo(BYTES);
      other.close();
    }
  }

  @CudaTest
  void blockOfACapture_isKept_untilGraphAndExecutableAreGone(Cuda cuda) {
    for (int mode : Graph.MODES) {
      try (MemoryPool pool = new MemoryPool(cuda);
          CudaStream stream = stream(cuda)) {
        Buffer[] used = new Buffer[1];
        Graph graph =
            Graph.of(
                stream,
                mode,
                () -> {
                  used[0] = pool.allocate(BYTES, stream);
                  used[0].fill((byte) 7, stream);
                  used[0].close();
                });
        checkNotHandedOut(pool, stream, used[0]);
        graph.launch(stream);
        graph.destroyGraph();
        stream.synchronize();
        checkNotHandedOut(pool, stream, used[0]);
        graph.close();
        Graph.awaitGone(pool, stream);
        assertThat(pool.stats().usedBytes()).isZero();
        pool.freeAllBlocks();
        assertThat(pool.totalBytes()).isZero();
      }
    }
  }

  /** Others may use it in the graph, and say nothing. */
  @CudaTest(simulatedOnly = true)
  void plainMemoryTakenInACapture_isKept_untilTheGraphIsGone(
      Subject subject, @NonBlocking CudaStream stream) {
    for (MemoryResource plain : List.of(MemoryResource.direct(), MemoryResource.managed())) {
      int before = subject.simulator().liveAllocations();
      Buffer[] taken = new Buffer[1];
      Graph graph = Graph.of(stream, () -> taken[0] = plain.allocate(BYTES, stream));
      taken[0].close();
      assertThat(subject.simulator().liveAllocations()).isEqualTo(before + 1);
      graph.close();
      await(subject, before);
    }
  }

  /** With objects launches can fail; and one tells of the end of a graph as well as many. */
  @CudaTest(simulatedOnly = true)
  void captureOfTheLibrary_needsNoObjectOfTheDriver_andOneOfOthersASingleOne(
      ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    Runnable body =
        () -> {
          for (int i = 0; i < 3; i++) {
            pool.allocate(BYTES, stream).close();
            MemoryResource.direct().allocate(BYTES, stream).close();
          }
        };
    stream.capture(body::run).close();
    assertThat(driver.count("userObjectCreate")).isZero();
    Graph.of(stream, body).close();
    assertThat(driver.count("userObjectCreate")).isEqualTo(1);
    assertThat(driver.count("graphRetainUserObject")).isEqualTo(1);
    Graph.awaitGone(pool, stream);
  }

  private static void await(Subject subject, int liveAllocations) {
    for (int i = 0; subject.simulator().liveAllocations() != liveAllocations; i++) {
      assertThat(i).as("looks").isLessThan(5000);
      subject.cuda().device(0).createStream().close(); // which looks for what can be released
      LockSupport.parkNanos(1_000_000);
    }
  }

  @CudaTest
  void replays_neverTouchMemoryOfOthers_andFindTheirOwn(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer result = pool.allocate(BYTES, stream)) {
      Graph graph =
          Graph.of(
              stream,
              () -> {
                Buffer step = pool.allocate(BYTES, stream);
                step.fill((byte) 7, stream);
                result.copyFrom(step, stream);
                step.close();
              });
      for (int round = 0; round < 3; round++) {
        try (Buffer mine = pool.allocate(BYTES, stream)) {
          mine.fill((byte) 1, stream);
          graph.launch(stream);
          stream.synchronize();
          assertThat(Bytes.of(mine)).containsOnly(1);
          assertThat(Bytes.of(result)).containsOnly(7);
        }
      }
      graph.close();
      Graph.awaitGone(pool, stream);
    }
  }

  @CudaTest
  void blockFromBefore_usedInACapture_isKept_whereverItIsClosed(
      MemoryPool pool, @NonBlocking CudaStream own, @NonBlocking CudaStream other) {
    for (CudaStream captured : List.of(own, other)) {
      Buffer used = pool.allocate(BYTES, own);
      Graph graph = Graph.of(captured, () -> used.fill((byte) 1, captured));
      used.close();
      assertThat(pool.stats().graphBytes()).isEqualTo(pool.stats().pendingBytes()).isPositive();
      checkNotHandedOut(pool, own, used);
      checkNotHandedOut(pool, other, used);
      graph.close();
      Graph.awaitGone(pool, own);
    }
    assertThat(pool.stats().usedBytes()).isZero();
  }

  @CudaTest
  void pinnedBlockUsedInACapture_isKept_untilTheGraphIsGone(
      Cuda cuda, PinnedMemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer target = cuda.allocate(BYTES, stream)) {
      PinnedBuffer used = pool.allocate(BYTES);
      Graph graph = Graph.of(stream, () -> target.copyFrom(used, stream));
      used.close();
      assertThat(pool.stats().pendingBytes()).isEqualTo(pool.totalBytes());
      try (PinnedBuffer next = pool.allocate(BYTES)) {
        assertThat(next.address()).isNotEqualTo(used.address());
      }
      graph.close();
      while (pool.stats().pendingBytes() > 0) {
        Thread.onSpinWait();
      }
    }
  }

  @CudaTest
  void blockClosedWhileItsStreamCaptures_isKept_forItMayBeUsedUnseen(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    Buffer used = pool.allocate(BYTES, stream);
    Buffer recorded = pool.allocate(BYTES, other);
    Graph graph =
        Graph.of(
            stream,
            () -> {
              used.close();
              recorded.recordUse(stream);
            });
    recorded.close();
    checkNotHandedOut(pool, stream, used);
    checkNotHandedOut(pool, other, recorded);
    graph.close();
    Graph.awaitGone(pool, stream);
  }

  /** What is queued before the capture may run beside the graph. */
  @CudaTest
  void captureGetsNoMemory_thatItsStreamIsStillUsing(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer before = pool.allocate(BYTES, stream);
    Gate gate = Gate.on(stream);
    before.fill((byte) 1, stream);
    before.close();
    Graph graph =
        Graph.of(
            stream,
            () -> {
              try (Buffer used = pool.allocate(BYTES, stream)) {
                assertThat(used.address()).isNotEqualTo(before.address());
              }
            });
    gate.open();
    stream.synchronize();
    graph.close();
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void streamThatJoinsACapture_countsToo(
      Cuda cuda,
      MemoryPool pool,
      @NonBlocking CudaStream origin,
      @NonBlocking CudaStream fork,
      @NonBlocking CudaStream further) {
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      List<Buffer> used = new ArrayList<>();
      Graph graph =
          Graph.of(
              origin,
              () -> {
                fork.waitFor(origin);
                fork.record(event);
                further.waitFor(event);
                for (CudaStream stream : List.of(fork, further)) {
                  Buffer buffer = pool.allocate(BYTES, stream);
                  buffer.fill((byte) 3, stream);
                  buffer.close();
                  used.add(buffer);
                }
                origin.waitFor(fork);
                origin.waitFor(further);
              });
      for (Buffer buffer : used) {
        checkNotHandedOut(pool, origin, buffer);
        checkNotHandedOut(pool, fork, buffer);
        checkNotHandedOut(pool, further, buffer);
      }
      graph.launch(origin);
      origin.synchronize();
      graph.close();
      Graph.awaitGone(pool, origin);
    }
  }

  @CudaTest
  void wrappedStream_isCapturedByItsOwner(Cuda cuda) {
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.device(0).wrapStream(handle, null)) {
      Buffer[] used = new Buffer[1];
      Graph graph =
          Graph.of(
              stream,
              () -> {
                used[0] = pool.allocate(BYTES, stream);
                used[0].close();
              });
      checkNotHandedOut(pool, stream, used[0]);
      graph.close();
      Graph.awaitGone(pool, stream);
    }
    cuda.driver().streams().streamDestroy(0, handle);
  }

  @CudaTest
  void captureThatFails_givesItsMemoryBack(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    cuda.driver().captures().streamBeginCapture(0, stream.handle(), 2);
    try (Buffer used = pool.allocate(BYTES, stream)) {
      used.fill((byte) 1, stream);
    }
    assertThatThrownBy(() -> cuda.driver().streams().streamQuery(0, stream.handle()))
        .hasMessageContaining("STREAM_CAPTURE");
    assertThatThrownBy(() -> cuda.driver().captures().streamEndCapture(0, stream.handle()))
        .hasMessageContaining("STREAM_CAPTURE");
    Graph.awaitGone(pool, stream);
    pool.freeAllBlocks();
    assertThat(pool.totalBytes()).isZero();
  }

  @CudaTest
  void memoryOfGraphs_countsForTheLimit_andComesBackWithThem(
      Cuda cuda, @NonBlocking CudaStream stream) {
    PoolOptions options = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(4 * BYTES));
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      Graph graph =
          Graph.of(
              stream,
              () -> {
                List<Buffer> all = new ArrayList<>();
                for (int i = 0; i < 4; i++) {
                  all.add(pool.allocate(BYTES, stream));
                }
                assertThatThrownBy(() -> pool.allocate(BYTES, stream))
                    .isInstanceOf(OutOfDeviceMemoryException.class);
                all.forEach(Buffer::close);
              });
      assertThatThrownBy(() -> pool.allocate(BYTES, stream))
          .isInstanceOf(OutOfDeviceMemoryException.class)
          .hasMessageContaining("for graphs=" + 4 * BYTES);
      graph.close();
      Graph.awaitGone(pool, stream);
      pool.allocate(4 * BYTES, stream).close();
      assertThat(pool.totalBytes()).isEqualTo(4 * BYTES);
    }
  }

  /** Somebody begins it after the library has looked, and before the driver gets the work. */
  @CudaTest
  void captureThatBeginsInTheMiddleOfACopy_keepsBothItsBlocks(
      Cuda cuda,
      ScriptedDriver driver,
      MemoryPool pool,
      @NonBlocking CudaStream own,
      @NonBlocking CudaStream captured) {
    CaptureCalls captures = cuda.driver().captures();
    long handle = captured.handle();
    Buffer source = pool.allocate(BYTES, own);
    Buffer target = pool.allocate(BYTES, own);
    own.synchronize();
    driver.answer(
        "memcpyAsync",
        call -> {
          captures.streamBeginCapture(0, handle, Graph.MODES[0]);
          return call.proceed();
        });
    target.copyFrom(source, captured);
    long graph = captures.streamEndCapture(0, handle);
    source.close();
    target.close();
    captured.synchronize(); // the graph alone has a use for them now
    checkNotHandedOut(pool, own, source);
    checkNotHandedOut(pool, own, target);
    cuda.driver().graphs().graphDestroy(graph);
    Graph.awaitGone(pool, own);
    assertThat(pool.stats().usedBytes()).isZero();
  }

  @CudaTest
  void severalGraphs_keepABlock_untilTheLastIsGone(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer used = pool.allocate(BYTES, stream);
    Graph first = Graph.of(stream, () -> used.fill((byte) 1, stream));
    Graph second = Graph.of(stream, () -> used.fill((byte) 2, stream));
    used.close();
    first.close();
    checkNotHandedOut(pool, stream, used);
    second.close();
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void poolThatCloses_whileGraphsUseItsMemory_letsThemGoOn(
      Cuda cuda, @NonBlocking CudaStream stream) {
    MemoryPool pool = new MemoryPool(cuda);
    Graph graph =
        Graph.of(
            stream,
            () -> {
              try (Buffer used = pool.allocate(BYTES, stream)) {
                used.fill((byte) 1, stream);
              }
            });
    pool.close();
    graph.launch(stream);
    stream.synchronize();
    graph.close();
    Graph.awaitGone(pool, stream);
    assertThat(pool.totalBytes()).isZero();
  }
}
