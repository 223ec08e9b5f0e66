package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphNode;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/** What graphs keep of what they use, when calls fail too, and what they refuse. */
class GraphUsesTest {
  private static final int BYTES = 1 << 12;
  private static final int LOOKS = 5_000;
  private static final LaunchConfig SMALL = LaunchConfig.of(1, 32);
  private static final int FLOATS = BYTES / Float.BYTES;

  @CudaTest
  void argumentOfAKernelAlone_isKept(Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      Buffer argument = pool.allocate(BYTES, stream);
      argument.fill((byte) 0, stream);
      definition
          .root()
          .launch(module.kernel("scale"), LaunchConfig.of(FLOATS / 256, 256), argument, 2f, FLOATS);
      long address = argument.address();
      argument.close();
      try (Buffer next = pool.allocate(BYTES, stream)) {
        assertThat(next.address()).isNotEqualTo(address);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(seeds = 24)
  @SuppressWarnings("try") // the graph is gone before its executable is updated
  void updateThatFailsAlthoughItWasDone_keepsTheMemoryOfBothGraphs(
      Cuda cuda, ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = pool.allocate(BYTES, stream)) {
      Buffer before = filled(pool, stream, 3);
      Buffer after = filled(pool, stream, 4);
      try (CudaGraph graph = stream.capture(() -> before.copyTo(out, stream));
          CudaGraphExec executable = graph.instantiate()) {
        graph.close();
        driver.answer(
            "graphExecUpdate",
            call -> {
              Object _ = call.proceed();
              throw new CudaException(CudaStatus.UNKNOWN, call.name(), "done all the same");
            });
        try (CudaGraph next = stream.capture(() -> after.copyTo(out, stream))) {
          assertThatThrownBy(() -> executable.update(next)).isInstanceOf(CudaException.class);
        }
        driver.unscript("graphExecUpdate");
        before.close();
        after.close();
        cuda.leaksFound();
        try (Buffer one = filled(pool, stream, 7);
            Buffer two = filled(pool, stream, 8)) {
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.areAll(out, 4)).isTrue();
          assertThat(Bytes.areAll(one, 7)).isTrue();
          assertThat(Bytes.areAll(two, 8)).isTrue();
        }
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** Its launches need not come after the work that the memory was used in. */
  @CudaTest(simulatedOnly = true)
  void memoryThatIsIdleBehindWork_isNotTakenInACapture(
      Cuda cuda,
      DeviceMemoryResource resource,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    try (PinnedBuffer out = cuda.allocatePinned(BYTES)) {
      Buffer used = resource.allocate(BYTES, stream);
      used.fill((byte) 5, stream);
      stream.synchronize();
      try (Gate _ = Gate.on(stream)) {
        used.copyTo(out, stream);
        used.close();
        try (CudaGraph graph = stream.capture(() -> fillAndClose(resource, stream));
            CudaGraphExec executable = graph.instantiate()) {
          executable.launch(other);
          other.synchronize();
        }
      }
      stream.synchronize();
      assertThat(Bytes.areAll(out, 5)).isTrue();
    }
  }

  private static void fillAndClose(DeviceMemoryResource resource, CudaStream stream) {
    try (Buffer taken = resource.allocate(BYTES, stream)) {
      taken.fill((byte) 9, stream);
    }
  }

  private static Buffer filled(MemoryPool pool, CudaStream stream, int value) {
    Buffer buffer = pool.allocate(BYTES, stream);
    buffer.fill((byte) value, stream);
    return buffer;
  }

  @CudaTest
  void graphThatCannotBeInstantiated_letsItsMemoryGo(
      ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer used = pool.allocate(BYTES, stream);
        CudaGraph graph = stream.capture(() -> used.fill((byte) 1, stream))) {
      driver.fail("graphInstantiateWithParams", CudaStatus.OUT_OF_MEMORY, 1);
      assertThatThrownBy(graph::instantiate).isInstanceOf(CudaException.class);
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(simulatedOnly = true)
  void captureThatBeginsInPart_isEnded(ScriptedDriver driver, @NonBlocking CudaStream stream) {
    driver.answer(
        "streamBeginCapture",
        call -> {
          Object _ = call.proceed();
          driver.fail("streamGetCaptureInfo", CudaStatus.NOT_PERMITTED, 1);
          return null;
        });
    assertThatThrownBy(() -> stream.beginCapture(CaptureOptions.DEFAULTS))
        .isInstanceOf(CudaException.class);
    driver.unscript("streamBeginCapture");
    assertThat(stream.isCapturing()).isFalse();
    stream.synchronize();
  }

  /** They share memory, which is closed: the next launch still waits for the last one. */
  @CudaTest(simulatedOnly = true)
  void executableThatIsClosedBehindItsMemory_isWaitedForByTheOthers(
      Cuda cuda,
      ScriptedDriver driver,
      MemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    GraphMemory memory = cuda.device(0).createGraphMemory();
    CaptureOptions options = CaptureOptions.DEFAULTS.withMemory(memory);
    CudaGraphExec first = executable(pool, stream, options);
    CudaGraphExec second = executable(pool, stream, options);
    try (Gate _ = Gate.on(stream)) {
      first.launch(stream);
      memory.close();
      first.close();
      driver.note("streamWaitEvent", "graphLaunch");
      second.launch(other);
      assertThat(driver.notes()).containsExactly("streamWaitEvent", "graphLaunch");
    }
    other.synchronize();
    second.close();
    Graph.awaitGone(pool, stream);
  }

  private static CudaGraphExec executable(
      MemoryPool pool, CudaStream stream, CaptureOptions options) {
    try (CudaGraph graph =
        stream.capture(
            options,
            () -> {
              try (Buffer shared = pool.allocate(BYTES, stream)) {
                shared.fill((byte) 1, stream);
              }
            })) {
      return graph.instantiate();
    }
  }

  @CudaTest
  void memoryThatCannotBeCopied_isRefused_onEitherSide(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer good = pool.allocate(BYTES, stream);
        Buffer none = pool.allocate(0, stream);
        Cuda another = Cuda.open(CudaOptions.simulated());
        Buffer theirs = another.allocate(BYTES)) {
      Buffer closed = pool.allocate(BYTES, stream);
      closed.close();
      refused(() -> definition.root().copy(good, none), "source: 0 bytes (expected: > 0)");
      refused(() -> definition.root().copy(none, good), "target: 0 bytes (expected: > 0)");
      refused(() -> definition.root().copy(good, theirs), "source: ");
      refused(() -> definition.root().copy(theirs, good), "target: ");
      assertThatThrownBy(() -> definition.root().copy(good, closed))
          .isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> definition.root().copy(closed, good))
          .isInstanceOf(IllegalStateException.class);
      assertThat(definition.nodes()).isEmpty();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(devices = 2)
  void streamOfAnotherDevice_isRefused_forLaunchesAndUploads(Cuda cuda) {
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        CudaGraphExec executable = definition.graph().instantiate();
        CudaStream there = cuda.device(1).createStream()) {
      refused(() -> executable.launch(there), "expected: a stream of device 0");
      refused(() -> executable.upload(there), "expected: a stream of device 0");
    }
  }

  /** The driver crashes when a graph runs without them. */
  @CudaTest(simulatedOnly = true)
  void eventsOfNodes_areDestroyedWithTheGraph(
      Cuda cuda, ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    CudaEvent recorded = cuda.device(0).createEvent();
    CudaEvent awaited = cuda.device(0).createEvent();
    try (GraphDefinition definition = new GraphDefinition(cuda.device(0));
        Buffer out = pool.allocate(BYTES, stream)) {
      GraphNode waits = definition.root().waitFor(awaited);
      GraphNode fill = definition.after(waits).fill(out, (byte) 1);
      GraphNode records = definition.after(fill).record(recorded);
      Set<Long> handles =
          Set.of(
              ((GraphNodeParams.EventWait) waits.parameters()).event(),
              ((GraphNodeParams.EventRecord) records.parameters()).event());
      driver.note(
          "eventDestroy", call -> handles.contains(call.number("event")) ? "destroyed" : null);
      recorded.close();
      awaited.close();
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        executable.launch(stream);
        stream.synchronize();
      }
      assertThat(driver.notes()).isEmpty();
    }
    Graph.awaitGone(pool, stream);
    assertThat(driver.notes()).containsExactly("destroyed", "destroyed");
  }

  /** Where it is recorded is known to the driver alone then. */
  @CudaTest(simulatedOnly = true)
  void eventThatAGraphRecords_isNotTakenForWorkOfTheStreamThatRecordedItBefore(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    try (CudaEvent event = stream.record();
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode _ = definition.root().record(event);
      stream.synchronize();
      long handle = event.handle();
      AtomicBoolean asked = new AtomicBoolean();
      driver.answer(
          "eventQuery",
          call ->
              call.number("event") == handle && asked.compareAndSet(false, true)
                  ? false
                  : call.proceed());
      stream.addCallback(event::synchronize).join();
      assertThat(asked).isTrue();
      driver.unscript("eventQuery");
    }
  }

  /** What changes before have left behind launches comes back in the same way. */
  @CudaTest
  void changeOfAnExecutableThatWasChangedAfterALaunch_triesAgainWhatCouldNotBeFreed(
      Cuda cuda, ScriptedDriver driver, MemoryPool pool, @NonBlocking CudaStream stream) {
    CudaModule module = TestKernels.launches(cuda);
    try (Buffer buffer = pool.allocate(BYTES, stream);
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode fill = definition.root().fill(buffer, (byte) 1);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        fill.updateIn(executable).fill(buffer, (byte) 3);
        executable.launch(stream);
        fill.updateIn(executable).fill(buffer, (byte) 4);
        driver.fail("libraryUnload", CudaStatus.INVALID_VALUE, 1);
        assertThatThrownBy(module::close).isInstanceOf(CudaException.class);
        long before = driver.count("libraryUnload");
        fill.updateIn(executable).fill(buffer, (byte) 2);
        assertThat(driver.count("libraryUnload")).isEqualTo(before + 1);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  private static void refused(Runnable call, String text) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(text);
  }

  /** It does what it did. */
  @CudaTest
  @SuppressWarnings("try") // the graph is gone before its executable is updated
  void updateThatIsRefused_keepsTheMemoryOfTheExecutable_andLetsTheOthersGo(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer out = pool.allocate(BYTES, stream)) {
      Buffer before = filled(pool, stream, 3);
      Buffer after = filled(pool, stream, 4);
      Runnable two =
          () -> {
            after.copyTo(out, stream);
            after.fill((byte) 5, stream);
          };
      try (CudaGraph graph = stream.capture(() -> before.copyTo(out, stream));
          CudaGraphExec executable = graph.instantiate()) {
        graph.close();
        try (CudaGraph next = stream.capture(two::run)) {
          assertThatThrownBy(() -> executable.update(next))
              .isInstanceOf(CudaException.class)
              .hasMessageContaining("the executable is as it was");
        }
        before.close();
        after.close();
        cuda.leaksFound();
        try (Buffer one = filled(pool, stream, 7);
            Buffer other = filled(pool, stream, 8)) {
          executable.launch(stream);
          stream.synchronize();
          assertThat(Bytes.areAll(out, 3)).isTrue();
          assertThat(Bytes.areAll(one, 7)).isTrue();
          assertThat(Bytes.areAll(other, 8)).isTrue();
        }
        awaitPending(pool, BYTES);
      }
    }
    Graph.awaitGone(pool, stream);
  }

  private static void awaitPending(MemoryPool pool, long bytes) {
    for (int i = 0; i < LOOKS && pool.stats().graphBytes() > bytes; i++) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(pool.stats().graphBytes()).isEqualTo(bytes);
  }

  /** A graph can run as long as it is there. */
  @CudaTest(simulatedOnly = true)
  void moduleWhoseKernelAGraphLaunches_isUnloadedAfterTheLast(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    for (String how : List.of("added", "changed", "changed in", "captured")) {
      long before = driver.count("libraryUnload");
      CudaModule other = TestKernels.launches(cuda);
      CudaModule module = TestKernels.launches(cuda);
      CudaKernel kernel = module.kernel("doNothing");
      GraphDefinition definition = new GraphDefinition(cuda.device(0));
      boolean isAdded = how.equals("added");
      GraphNode node =
          definition.root().launch(isAdded ? kernel : other.kernel("doNothing"), SMALL);
      if (how.equals("changed")) {
        node.update().launch(kernel, SMALL);
      }
      CudaGraph captured = stream.capture(() -> stream.launch(kernel, SMALL));
      CudaGraphExec executable =
          (how.equals("captured") ? captured : definition.graph()).instantiate();
      if (how.equals("changed in")) {
        node.updateIn(executable).launch(kernel, SMALL);
      }
      captured.close();
      module.close();
      definition.close();
      for (int i = 0; i < 3; i++) {
        executable.launch(stream);
        stream.synchronize();
        cuda.leaksFound();
      }
      assertThat(driver.count("libraryUnload")).as(how).isEqualTo(before);
      executable.close();
      for (int i = 0; i < LOOKS && driver.count("libraryUnload") == before; i++) {
        LockSupport.parkNanos(1_000_000);
        cuda.leaksFound();
      }
      assertThat(driver.count("libraryUnload")).as(how).isEqualTo(before + 1);
      other.close();
    }
  }
}
