package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphOptions;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.util.concurrent.locks.LockSupport;

/** A launch that the driver refuses leaves those before it as they are. */
class FailedLaunchTest {
  private static final int BYTES = 1 << 16;
  private static final int LOOKS = 5_000;

  @CudaTest(seeds = 24)
  void memoryOfTheLaunchBefore_staysUntilThatIsDone(
      Cuda cuda,
      ScriptedDriver driver,
      MemoryPool pool,
      PinnedMemoryPool pinned,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    try (Buffer result = pool.allocate(BYTES, stream)) {
      try (PinnedBuffer used = pinned.allocate(BYTES)) {
        used.segment().fill((byte) 5);
        try (CudaGraph graph = stream.capture(() -> used.copyTo(result, stream));
            CudaGraphExec executable = graph.instantiate()) {
          executable.launch(stream);
          driver.fail("graphLaunch", CudaStatus.OUT_OF_MEMORY, 1);
          assertThatThrownBy(() -> executable.launch(other)).isInstanceOf(CudaException.class);
        }
      }
      cuda.leaksFound();
      try (PinnedBuffer taken = pinned.allocate(BYTES)) {
        taken.segment().fill((byte) 6);
        stream.synchronize();
      }
      assertThat(Bytes.areAll(result, 5)).isTrue();
    }
    awaitNothingPending(cuda, pool, pinned, stream);
  }

  /** The driver may have done what it reports an error of. */
  @CudaTest(seeds = 24, sanitized = false)
  void memoryOfALaunchThatFailed_staysUntilItsStreamIsDone_alsoAfterOneInAnother(
      Cuda cuda,
      ScriptedDriver driver,
      MemoryPool pool,
      PinnedMemoryPool pinned,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    try (Buffer result = pool.allocate(BYTES, stream)) {
      try (PinnedBuffer used = pinned.allocate(BYTES)) {
        used.segment().fill((byte) 5);
        try (CudaGraph graph = stream.capture(() -> used.copyTo(result, stream));
            CudaGraphExec executable = graph.instantiate()) {
          executable.launch(stream);
          driver.answer(
              "graphLaunch",
              call -> {
                Object _ = call.proceed();
                throw new CudaException(CudaStatus.OUT_OF_MEMORY, call.name(), "on purpose");
              });
          assertThatThrownBy(() -> executable.launch(other)).isInstanceOf(CudaException.class);
          driver.unscript("graphLaunch");
        }
      }
      stream.synchronize();
      cuda.leaksFound();
      try (PinnedBuffer taken = pinned.allocate(BYTES)) {
        taken.segment().fill((byte) 6);
        other.synchronize();
      }
      assertThat(Bytes.areAll(result, 5)).isTrue();
    }
    awaitNothingPending(cuda, pool, pinned, stream);
  }

  /** The later launch is behind those before the one that failed, whatever comes there next. */
  @CudaTest(simulatedOnly = true)
  void memoryOfALaunchAfterOneThatFailed_isLetGoOf_onceThatIsDone(
      ScriptedDriver driver,
      MemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    Buffer used = pool.allocate(BYTES, other);
    Gate gate;
    try (CudaGraph graph = other.capture(() -> used.fill((byte) 1, other));
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      driver.fail("graphLaunch", CudaStatus.OUT_OF_MEMORY, 1);
      assertThatThrownBy(() -> executable.launch(other)).isInstanceOf(CudaException.class);
      executable.launch(other);
      gate = Gate.on(stream);
    }
    try (gate) {
      used.close();
      other.synchronize();
      Graph.awaitGone(pool, other);
    }
    stream.synchronize();
  }

  /** There is none before it that could still use something. */
  @CudaTest(simulatedOnly = true)
  void firstLaunchThatFails_leavesTheExecutableToBeUpdatedAndLaunched(
      ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> buffer.fill((byte) 1, stream));
        CudaGraph next = stream.capture(() -> buffer.fill((byte) 2, stream));
        CudaGraphExec executable = graph.instantiate()) {
      driver.fail("graphLaunch", CudaStatus.OUT_OF_MEMORY, 1);
      assertThatThrownBy(() -> executable.launch(stream)).isInstanceOf(CudaException.class);
      executable.update(next);
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(buffer, 2)).isTrue();
    }
  }

  private static void awaitNothingPending(
      Cuda cuda, MemoryPool pool, PinnedMemoryPool pinned, CudaStream stream) {
    Graph.awaitGone(pool, stream);
    for (int i = 0; i < LOOKS && pinned.stats().pendingBytes() > 0; i++) {
      LockSupport.parkNanos(1_000_000);
      cuda.leaksFound();
    }
    assertThat(pinned.stats().pendingBytes()).isZero();
  }

  /** Only an invalid value can be about memory that was not freed. */
  @CudaTest
  void failureOfTheDriver_isNotExplainedByMemory(
      ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> buffer.fill((byte) 1, stream));
        CudaGraphExec executable = graph.instantiate()) {
      driver.fail("graphLaunch", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> executable.launch(stream))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("GraphOptions.freeOnLaunch");
      driver.fail("graphLaunch", CudaStatus.INVALID_HANDLE, 1);
      assertThatThrownBy(() -> executable.launch(stream))
          .isInstanceOf(CudaException.class)
          .hasMessageNotContaining("freeOnLaunch");
      executable.launch(stream);
      stream.synchronize();
    }
  }

  /** It frees what was not freed, so that this is not why. */
  @CudaTest
  void failureOfALaunchThatFrees_isNotExplainedByMemory(
      ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer buffer = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> buffer.fill((byte) 1, stream));
        CudaGraphExec executable =
            graph.instantiate(GraphOptions.DEFAULTS.withFreeOnLaunch(true))) {
      driver.fail("graphLaunch", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> executable.launch(stream))
          .isInstanceOf(CudaException.class)
          .hasMessageNotContaining("freeOnLaunch");
      executable.launch(stream);
      stream.synchronize();
    }
  }

  /** Its memory comes back when the device was waited for. */
  @CudaTest(simulatedOnly = true)
  @SuppressWarnings("try") // the graph is gone before what it used
  void endOfALaunchThatCannotBeMarked_isReported_andWhatItUsesIsKept(
      Cuda cuda,
      ScriptedDriver driver,
      MemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    try (Buffer out = pool.allocate(BYTES, stream)) {
      Buffer used = pool.allocate(BYTES, stream);
      used.fill((byte) 5, stream);
      Buffer taken;
      try (CudaGraph graph = stream.capture(() -> used.copyTo(out, stream))) {
        CudaGraphExec executable = graph.instantiate();
        try (Gate _ = Gate.on(stream)) {
          executable.launch(stream);
          driver.fail("eventRecord", CudaStatus.INVALID_VALUE, 1);
          assertThatThrownBy(executable::close)
              .isInstanceOf(CudaException.class)
              .hasMessageContaining("eventRecord");
          driver.unscript("eventRecord");
          graph.close();
          used.close();
          cuda.leaksFound();
          pool.allocate(BYTES, stream).close();
          taken = pool.allocate(BYTES, other);
          taken.fill((byte) 6, other);
          other.synchronize();
        }
        stream.synchronize();
        assertThat(Bytes.areAll(out, 5)).isTrue();
        taken.close();
      }
    }
    cuda.device(0).synchronize();
    Graph.awaitGone(pool, stream);
  }

  /** It has waited for all work by then. */
  @CudaTest(simulatedOnly = true, tidy = false)
  void executableThatWasLaunched_isFollowedByNoMark_asTheCudaEnds(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    PinnedBuffer used = cuda.allocatePinned(BYTES);
    CudaGraphExec executable;
    try (CudaGraph graph = stream.capture(() -> used.fill((byte) 1, stream))) {
      executable = graph.instantiate();
    }
    executable.launch(stream);
    cuda.device(0).synchronize();
    driver.note("graphExecDestroy", "eventCreate", "eventRecord", "streamDestroy");
    cuda.close();
    assertThat(executable.isClosed()).isTrue();
    assertThat(driver.notes()).containsExactly("graphExecDestroy", "streamDestroy");
  }
}
