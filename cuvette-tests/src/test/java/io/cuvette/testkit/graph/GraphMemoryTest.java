package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.MemoryPool;
import io.cuvette.OpenObject;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** Memory that several graphs share. */
class GraphMemoryTest {
  private static final int ITEM = 1 << 16;
  private static final int LARGEST = 128;

  /** A step of a server: two layers, whose memory is of the batch's size, and a result. */
  private static CudaGraph step(
      CudaStream stream, CaptureOptions options, int batch, MemoryPool pool, Buffer result) {
    return stream.capture(
        options,
        () -> {
          try (Buffer first = pool.allocate((long) batch * ITEM, stream);
              Buffer second = pool.allocate((long) batch * ITEM, stream)) {
            first.fill((byte) batch, stream);
            first.copyTo(second, stream);
            second.slice(0, ITEM).copyTo(result, stream);
          }
        });
  }

  private static long held(
      Cuda cuda, CudaStream stream, Buffer result, Supplier<GraphMemory> made, int... batches) {
    try (MemoryPool pool = new MemoryPool(cuda);
        var _ = cuda.useAllocator(pool)) {
      GraphMemory memory = made.get();
      CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
      List<CudaGraphExec> executables = new ArrayList<>();
      for (int batch : batches) {
        try (CudaGraph graph = step(stream, options, batch, pool, result)) {
          executables.add(graph.instantiate());
        }
      }
      for (int i = 0; i < 2 * batches.length; i++) {
        executables.get(i % batches.length).launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(result, (byte) batches[i % batches.length])).isTrue();
      }
      long held = pool.stats().heldBytes();
      executables.forEach(CudaGraphExec::close);
      memory.close();
      Graph.awaitGone(pool, stream);
      pool.freeAllBlocks();
      assertThat(pool.stats().heldBytes()).isZero();
      return held;
    }
  }

  @CudaTest
  void largestFirst_holdsAsMuchAsTheLargest(
      Cuda cuda, MemoryPool results, @NonBlocking CudaStream stream) {
    try (Buffer result = results.allocate(ITEM, stream)) {
      Supplier<GraphMemory> made = cuda.device(0)::createGraphMemory;
      long alone = held(cuda, stream, result, made, LARGEST);
      assertThat(held(cuda, stream, result, made, LARGEST, 64, 32, 16, 8, 4, 2, 1))
          .isLessThanOrEqualTo((long) (alone * 1.05));
    }
    Graph.awaitGone(results, stream);
  }

  @CudaTest
  void withRoomForTheLargest_theOrderDoesNotMatter(
      Cuda cuda, MemoryPool results, @NonBlocking CudaStream stream) {
    try (Buffer result = results.allocate(ITEM, stream)) {
      long bytes = 2L * LARGEST * ITEM;
      Supplier<GraphMemory> made = () -> cuda.device(0).createGraphMemory(bytes);
      assertThat(held(cuda, stream, result, made, 1, 2, 4, 8, 16, 32, 64, LARGEST))
          .isLessThanOrEqualTo((long) (bytes * 1.05));
    }
    Graph.awaitGone(results, stream);
  }

  @CudaTest
  void launchesInSeveralStreams_runOneAfterTheOther(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (Buffer result = pool.allocate(ITEM, stream);
        Buffer otherResult = pool.allocate(ITEM, stream);
        GraphMemory memory = cuda.device(0).createGraphMemory();
        CudaGraph graph =
            step(stream, CaptureOptions.DEFAULTS.withMemory(memory), 8, pool, result);
        CudaGraph next =
            step(stream, CaptureOptions.DEFAULTS.withMemory(memory), 7, pool, otherResult);
        CudaGraphExec first = graph.instantiate();
        CudaGraphExec second = next.instantiate()) {
      for (int i = 0; i < 20; i++) {
        first.launch(stream);
        second.launch(other);
      }
      stream.synchronize();
      other.synchronize();
      assertThat(Bytes.areAll(result, 8)).isTrue();
      assertThat(Bytes.areAll(otherResult, 7)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(seeds = 12)
  void captureWhileALaunchRuns_takesItsMemory_andItsOwnLaunchWaits(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (Buffer result = pool.allocate(ITEM, stream);
        Buffer otherResult = pool.allocate(ITEM, stream);
        GraphMemory memory = cuda.device(0).createGraphMemory()) {
      CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
      try (CudaGraph graph = step(stream, options, 8, pool, result);
          CudaGraphExec first = graph.instantiate()) {
        first.launch(other);
        try (CudaGraph next = step(stream, options, 7, pool, otherResult);
            CudaGraphExec second = next.instantiate()) {
          second.launch(stream);
          stream.synchronize();
        }
        other.synchronize();
      }
      assertThat(Bytes.areAll(result, 8)).isTrue();
      assertThat(Bytes.areAll(otherResult, 7)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  /** No event marks the first launch then, and the second has the same memory. */
  @CudaTest(simulatedOnly = true)
  void launchThatACaptureKeepsFromBeingMarked_isWaitedForByTheNext(
      Cuda cuda,
      ScriptedDriver script,
      MemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    try (Buffer result = pool.allocate(ITEM, stream);
        GraphMemory memory = cuda.device(0).createGraphMemory();
        CudaGraph graph =
            step(stream, CaptureOptions.DEFAULTS.withMemory(memory), 8, pool, result);
        CudaGraphExec executable = graph.instantiate();
        CudaGraphExec next = graph.instantiate()) {
      script.note("graphLaunch", "eventSynchronize");
      script.fail("eventRecord", CudaStatus.STREAM_CAPTURE_UNSUPPORTED, 1);
      executable.launch(stream);
      next.launch(other);
      assertThat(script.takeNotes())
          .containsExactly("graphLaunch", "eventSynchronize", "graphLaunch");
      other.synchronize();
    }
    Graph.awaitGone(pool, stream);
  }

  /** A copy that the driver refuses has none of the graph's memory. */
  @CudaTest(simulatedOnly = true)
  void memoryOfAGraphThatCouldNotBeCopied_isFreeAgainWithTheGraph(
      Cuda cuda, ScriptedDriver script, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer result = cuda.allocate(ITEM, stream)) {
      CudaGraph graph = step(stream, CaptureOptions.DEFAULTS, 8, pool, result);
      script.fail("graphClone", CudaStatus.OUT_OF_MEMORY, 1);
      assertThatThrownBy(graph::copy).isInstanceOf(CudaException.class);
      graph.close();
      Graph.awaitGone(pool, stream);
      pool.freeAllBlocks();
      assertThat(pool.stats().heldBytes()).isZero();
    }
  }

  /** The next graph can be launched in another stream, beside that use. */
  @CudaTest
  void memoryOfACapture_thatItsStreamUsesAfterwards_isNotTakenAtOnceByTheNextCapture(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    List<Buffer> taken = new ArrayList<>();
    try (GraphMemory memory = cuda.device(0).createGraphMemory()) {
      CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
      CudaGraph graph = stream.capture(options, () -> taken.add(pool.allocate(ITEM, stream)));
      try (Gate _ = Gate.on(stream)) {
        taken.getFirst().fill((byte) 1, stream);
        CudaGraph next =
            stream.capture(
                options,
                () -> {
                  taken.getFirst().close();
                  taken.add(pool.allocate(ITEM, stream));
                });
        assertThat(taken.getLast().address()).isNotEqualTo(taken.getFirst().address());
        taken.getLast().close();
        next.close();
      }
      graph.close();
    }
    stream.synchronize();
    Graph.awaitGone(pool, stream);
  }

  /** Its own stream takes no part, and nothing orders the one that used it. */
  @CudaTest
  void blockOfAnEarlierCapture_isUsedAgain_onceTheOneThatUsedItIsOver_andNotBefore(
      Cuda cuda,
      MemoryPool pool,
      @NonBlocking CudaStream first,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    List<Buffer> taken = new ArrayList<>();
    try (GraphMemory memory = cuda.device(0).createGraphMemory()) {
      CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
      try (CudaGraph _ = first.capture(options, () -> taken.add(pool.allocate(ITEM, first)));
          CudaGraph _ =
              stream.capture(
                  options,
                  () -> {
                    other.waitFor(stream);
                    taken.getFirst().fill((byte) 1, other);
                    taken.getFirst().close();
                    taken.add(pool.allocate(ITEM, stream));
                    stream.waitFor(other);
                  });
          CudaGraph _ = stream.capture(options, () -> taken.add(pool.allocate(ITEM, stream)))) {
        assertThat(taken.get(1).address()).isNotEqualTo(taken.getFirst().address());
        assertThat(taken.get(2).address()).isEqualTo(taken.getFirst().address());
        taken.forEach(Buffer::close);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void closedMemory_takesNoMoreCaptures_andItsGraphsGoOn(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    GraphMemory memory = cuda.device(0).createGraphMemory();
    CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
    try (Buffer result = pool.allocate(ITEM, stream);
        CudaGraph graph = step(stream, options, 3, pool, result);
        CudaGraphExec executable = graph.instantiate()) {
      memory.close();
      assertThatThrownBy(() -> stream.capture(options, () -> {}))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("graph memory of device 0")
          .hasMessageEndingWith("is closed");
      executable.launch(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(result, 3)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void updateWithAGraphOfOtherMemory_isRefused(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphMemory memory = cuda.device(0).createGraphMemory();
        Buffer result = pool.allocate(ITEM, stream);
        CudaGraph shared =
            step(stream, CaptureOptions.DEFAULTS.withMemory(memory), 1, pool, result);
        CudaGraph own = step(stream, CaptureOptions.DEFAULTS, 1, pool, result);
        CudaGraphExec executable = own.instantiate()) {
      assertThatThrownBy(() -> executable.update(shared))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("has other memory than");
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void negativeRoom_isRefused_beforeAnythingIsCaptured(Cuda cuda, ScriptedDriver driver) {
    assertThatThrownBy(() -> cuda.device(0).createGraphMemory(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("bytes: -1");
    assertThat(driver.count("streamBeginCapture")).isZero();
  }

  /** Those before are over, and with them what told when their launches are. */
  @CudaTest
  void executableThatIsMadeWhenTheMemoryAndAllOthersAreClosed_isLaunched(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    GraphMemory memory = cuda.device(0).createGraphMemory();
    CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
    try (Buffer result = pool.allocate(ITEM, stream);
        CudaGraph graph = step(stream, options, 3, pool, result)) {
      memory.close();
      for (CudaStream each : List.of(stream, other, other, stream)) {
        result.fill((byte) 0);
        try (CudaGraphExec executable = graph.instantiate()) {
          executable.launch(each);
        }
        each.synchronize();
        assertThat(Bytes.areAll(result, 3)).isTrue();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** Nothing would order its launches and those of the others. */
  @CudaTest
  void graphThatSharesMemory_isNoPartOfADefinition(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphMemory memory = cuda.device(0).createGraphMemory();
        Buffer result = pool.allocate(ITEM, stream);
        CudaGraph shared =
            step(stream, CaptureOptions.DEFAULTS.withMemory(memory), 1, pool, result);
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      assertThatThrownBy(() -> definition.root().embed(shared))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("shares memory with others");
      assertThat(definition.nodes()).isEmpty();
    }
    Graph.awaitGone(pool, stream);
  }

  /** Its memory is used until then, whoever of those that use it is gone. */
  @CudaTest(simulatedOnly = true)
  @SuppressWarnings("try") // the memory is closed before the last launch
  void launch_isBehindTheLastOne_whateverWasClosedMeanwhile(
      Cuda cuda,
      ScriptedDriver driver,
      MemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    for (boolean closesMemory : new boolean[] {false, true}) {
      GraphMemory memory = cuda.device(0).createGraphMemory();
      CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
      try (memory;
          Buffer result = pool.allocate(ITEM, stream);
          CudaGraph graph = step(stream, options, 3, pool, result);
          CudaGraph next = step(stream, options, 4, pool, result);
          Gate _ = Gate.on(stream)) {
        CudaGraphExec first = graph.instantiate();
        CudaGraphExec second = closesMemory ? next.instantiate() : null;
        first.launch(stream);
        if (closesMemory) {
          memory.close();
        }
        first.close();
        try (CudaGraphExec after = second == null ? next.instantiate() : second) {
          long waits = driver.count("streamWaitEvent");
          after.launch(other);
          assertThat(driver.count("streamWaitEvent")).isEqualTo(waits + 1);
          after.launch(other);
          assertThat(driver.count("streamWaitEvent")).as("in one stream").isEqualTo(waits + 1);
        }
      }
      stream.synchronize();
      other.synchronize();
    }
    Graph.awaitGone(pool, stream);
  }

  /** To wait for the launch before would be of no use. */
  @CudaTest(simulatedOnly = true)
  void launchInAStreamThatCaptures_isRefused_andWaitsForNothing(
      Cuda cuda,
      ScriptedDriver driver,
      MemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    try (GraphMemory memory = cuda.device(0).createGraphMemory();
        Buffer result = pool.allocate(ITEM, stream);
        CudaGraph graph =
            step(stream, CaptureOptions.DEFAULTS.withMemory(memory), 3, pool, result);
        CudaGraphExec executable = graph.instantiate()) {
      try (Gate _ = Gate.on(stream)) {
        executable.launch(stream);
        other.beginCapture(CaptureOptions.DEFAULTS);
        driver.note("eventSynchronize", "streamSynchronize", "streamWaitEvent");
        assertThatThrownBy(() -> executable.launch(other))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageStartingWith("launch: ")
            .hasMessageContaining("captureChild adds a graph to what is captured");
        assertThat(driver.notes()).isEmpty();
        other.endCapture().close();
      }
      executable.launch(other);
      other.synchronize();
      assertThat(Bytes.areAll(result, 3)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  /** Whichever step of making its first piece fails. */
  @CudaTest(simulatedOnly = true)
  void memoryThatCannotBeMade_isNotLeftOpen(Cuda cuda, ScriptedDriver driver) {
    for (String step : List.of("streamBeginCapture", "streamEndCapture", "streamCreate")) {
      String call = step.equals("streamCreate") ? "streamCreateWithPriority" : step;
      driver.fail(call, CudaStatus.OUT_OF_MEMORY, 1);
      assertThatThrownBy(() -> cuda.device(0).createGraphMemory(ITEM))
          .as(call)
          .isInstanceOf(CudaException.class);
      assertThat(cuda.openObjects())
          .as(call)
          .extracting(OpenObject::what)
          .noneMatch(what -> what.startsWith("graph memory"));
      driver.unscript(call);
    }
    assertThatThrownBy(() -> cuda.device(0).createGraphMemory(-1))
        .isInstanceOf(IllegalArgumentException.class);
    try (GraphMemory memory = cuda.device(0).createGraphMemory(ITEM)) {
      assertThat(cuda.openObjects()).extracting(OpenObject::what).contains(memory.toString());
    }
  }

  /** Whoever closes it keeps nothing from the others. */
  @CudaTest
  void memoryThatWasClosedInAnotherThread_isForItsExecutablesStill(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) throws Exception {
    GraphMemory memory = cuda.device(0).createGraphMemory();
    try (Buffer result = pool.allocate(ITEM, stream);
        CudaGraph graph =
            step(stream, CaptureOptions.DEFAULTS.withMemory(memory), 8, pool, result)) {
      CudaGraphExec executable = graph.instantiate();
      Thread closing = Thread.ofPlatform().start(memory::close);
      closing.join();
      Thread using =
          Thread.ofPlatform()
              .daemon()
              .start(() -> {
                executable.launch(stream);
                executable.close();
              });
      assertThat(using.join(Duration.ofSeconds(60))).isTrue();
      stream.synchronize();
      assertThat(Bytes.areAll(result, 8)).isTrue();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(simulatedOnly = true)
  void memoryOfAClosedCuda_isRefusedAsThat(@NonBlocking CudaStream stream) {
    Cuda gone = Cuda.open(CudaOptions.simulated());
    CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(gone.device(0).createGraphMemory());
    gone.close();
    assertThatThrownBy(() -> stream.beginCapture(options))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Cuda is closed");
    stream.synchronize();
  }
}
