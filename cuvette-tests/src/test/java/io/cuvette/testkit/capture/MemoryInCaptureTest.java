package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolStats;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Supplier;

/** Memory that is used again inside a capture, and nowhere else as long as there is a graph. */
class MemoryInCaptureTest {
  private static final int BYTES = 1 << 20;

  @CudaTest
  void closedBlock_isUsedAgain_byWhatTheSameStreamCapturesNext(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    Set<Long> addresses = new HashSet<>();
    Graph graph =
        Graph.of(
            stream,
            () -> {
              for (int i = 0; i < 10; i++) {
                try (Buffer step = pool.allocate(BYTES, stream)) {
                  step.fill((byte) i, stream);
                  addresses.add(step.address());
                }
              }
            });
    assertThat(addresses).hasSize(1);
    assertThat(pool.stats().heldBytes()).isEqualTo(BYTES);
    graph.close();
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void blockThatAnotherStreamUsedInTheCapture_isNotUsedAgain(
      MemoryPool pool, @NonBlocking CudaStream origin, @NonBlocking CudaStream fork) {
    Graph graph =
        Graph.of(
            origin,
            () -> {
              Buffer shared = pool.allocate(BYTES, origin);
              shared.fill((byte) 1, origin);
              fork.waitFor(origin);
              shared.fill((byte) 2, fork);
              shared.close();
              try (Buffer next = pool.allocate(BYTES, origin)) {
                assertThat(next.address()).isNotEqualTo(shared.address());
              }
              origin.waitFor(fork);
            });
    graph.close();
    Graph.awaitGone(pool, origin);
  }

  /** What is idle is for work queued in order of the stream, beside which a graph can run. */
  @CudaTest
  void idleMemory_isForNoCapture(AsyncMemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer before = pool.allocate(BYTES, stream);
    before.close();
    Set<Long> inside = new HashSet<>();
    Graph graph =
        Graph.of(
            stream,
            () -> {
              try (Buffer step = pool.allocate(BYTES, stream)) {
                step.fill((byte) 1, stream);
                inside.add(step.address());
              }
            });
    assertThat(inside).hasSize(1).doesNotContain(before.address());
    try (Buffer after = pool.allocate(BYTES, stream)) {
      assertThat(inside).doesNotContain(after.address());
    }
    graph.close();
  }

  /** The graph may run beside that. */
  @CudaTest(simulatedOnly = true)
  void blockThatAStreamOutsideUsesMeanwhile_isNotUsedAgain(
      MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream outside) {
    CudaGraph graph =
        stream.capture(() -> {
          Buffer shared = pool.allocate(BYTES, stream);
          shared.fill((byte) 1, outside);
          shared.close();
          try (Buffer next = pool.allocate(BYTES, stream)) {
            assertThat(next.address()).isNotEqualTo(shared.address());
          }
        });
    outside.synchronize();
    graph.close();
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void streamsOfACapture_doNotShareWhatTheyClosed(
      MemoryPool pool, @NonBlocking CudaStream origin, @NonBlocking CudaStream fork) {
    Graph graph =
        Graph.of(
            origin,
            () -> {
              fork.waitFor(origin);
              Buffer first = pool.allocate(BYTES, origin);
              first.fill((byte) 1, origin);
              first.close();
              try (Buffer other = pool.allocate(BYTES, fork)) {
                assertThat(other.address()).isNotEqualTo(first.address());
              }
              origin.waitFor(fork);
            });
    graph.close();
    Graph.awaitGone(pool, origin);
  }

  @CudaTest
  void memoryOfAGraph_isCountedApart_andNotReleased(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    Graph graph =
        Graph.of(
            stream,
            () -> {
              Buffer open = pool.allocate(BYTES, stream);
              pool.allocate(2 * BYTES, stream).close();
              open.fill((byte) 1, stream);
              open.close();
            });
    PoolStats stats = pool.stats();
    assertThat(stats.graphBytes()).isEqualTo(3 * BYTES).isEqualTo(stats.freeBytes());
    assertThat(stats.releasableBytes()).isZero();
    pool.freeAllBlocks();
    assertThat(pool.totalBytes()).isEqualTo(3 * BYTES);
    try (Buffer outside = pool.allocate(BYTES, stream)) {
      assertThat(outside.blockBytes()).isEqualTo(BYTES);
      assertThat(pool.totalBytes()).isEqualTo(4 * BYTES);
    }
    graph.close();
    Graph.awaitGone(pool, stream);
    assertThat(pool.stats().releasableBytes()).isEqualTo(4 * BYTES);
  }

  @CudaTest
  void blockFromBefore_isCountedAsTheGraphs_onceItIsClosed(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    assertClosedBlockIsTheGraphs(pool, pool::stats, stream);
    try (ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      assertClosedBlockIsTheGraphs(elastic, elastic::stats, stream);
    }
  }

  private static void assertClosedBlockIsTheGraphs(
      MemoryResource pool, Supplier<PoolStats> stats, CudaStream stream) {
    Buffer block = pool.allocate(BYTES, stream);
    try (CudaGraph _ = stream.capture(() -> block.fill((byte) 1, stream))) {
      assertThat(stats.get().graphBytes()).isZero();
      block.close();
      PoolStats closed = stats.get();
      assertThat(closed.graphBytes()).isEqualTo(BYTES).isEqualTo(closed.pendingBytes());
    }
    stream.synchronize();
    assertThat(stats.get().graphBytes()).isZero();
  }

  /** Its stream captures when it is closed, and cannot be asked for its work before that ends. */
  @CudaTest(seeds = 12)
  void blockThatWasClosedInALaterCapture_isBack_onceAllWorkWasWaitedFor(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer[] block = new Buffer[1];
    CudaGraph first =
        stream.capture(() -> {
          block[0] = pool.allocate(BYTES, stream);
          block[0].fill((byte) 1, stream);
        });
    CudaGraph second = stream.capture(() -> block[0].close());
    first.close();
    second.close();
    stream.synchronize();
    assertThat(pool.stats().pendingBytes()).isZero();
    assertThat(pool.freeAllBlocks()).isEqualTo(BYTES);
  }

  /** What is captured may use its address, of which this library hears nothing. */
  @CudaTest
  void blockThatOnlyItsAddressIsUsedOf_isTheGraphsAsLongAsThatIs(
      MemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer[] block = new Buffer[1];
    CudaGraph graph = stream.capture(() -> block[0] = pool.allocate(BYTES, stream));
    block[0].close();
    stream.synchronize();
    try (Buffer outside = pool.allocate(BYTES, stream)) {
      assertThat(outside.address()).isNotEqualTo(block[0].address());
    }
    assertThat(pool.stats().releasableBytes()).isEqualTo(BYTES);
    graph.close();
    Graph.awaitGone(pool, stream);
    assertThat(pool.freeAllBlocks()).isEqualTo(2 * BYTES);
  }

  /** The same of a pool of the driver, which gives memory beside the graph. */
  @CudaTest(simulatedOnly = true)
  void memoryOfTheDriversPool_thatOnlyItsAddressIsUsedOf_isTheGraphsAsLongAsThatIs(
      AsyncMemoryPool pool, @NonBlocking CudaStream stream) {
    Buffer[] block = new Buffer[1];
    CudaGraph graph = stream.capture(() -> block[0] = pool.allocate(BYTES, stream));
    block[0].close();
    stream.synchronize();
    assertThat(pool.liveBytes()).isEqualTo(BYTES);
    try (Buffer outside = pool.allocate(BYTES, stream)) {
      assertThat(outside.address()).isNotEqualTo(block[0].address());
    }
    graph.close();
    stream.synchronize();
    long _ = pool.freeAllBlocks();
    assertThat(pool.liveBytes()).isZero();
  }

  /** The chain of steps would be garbage if a step's memory were another's at the wrong time. */
  @CudaTest
  void stepsInTheSameMemory_giveWhatTheySay_inEveryReplay(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer result = pool.allocate(BYTES * 4L, stream)) {
      Graph graph =
          Graph.of(
              stream,
              () -> {
                for (int i = 0; i < 4; i++) {
                  try (Buffer step = pool.allocate(BYTES, stream)) {
                    step.fill((byte) (i + 1), stream);
                    result.slice(i * (long) BYTES, BYTES).copyFrom(step, stream);
                  }
                }
              });
      for (int round = 0; round < 5; round++) {
        result.fill((byte) 0, stream);
        try (Buffer other = pool.allocate(BYTES, stream)) {
          other.fill((byte) 9, stream);
          graph.launch(stream);
          stream.synchronize();
          assertThat(Bytes.of(other)).containsOnly(9);
        }
        for (int i = 0; i < 4; i++) {
          assertThat(Bytes.of(result.slice(i * (long) BYTES, BYTES))).containsOnly(i + 1);
        }
      }
      graph.close();
      Graph.awaitGone(pool, stream);
    }
  }
}
