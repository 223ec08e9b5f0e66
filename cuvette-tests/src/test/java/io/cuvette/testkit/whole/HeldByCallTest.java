package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.EventOptions;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;

/**
 * Whatever is closed while another thread is inside a call of the driver with it: the driver gets
 * it back after that call has ended, and the call works.
 */
@Timeout(60)
class HeldByCallTest {
  private static final int BYTES = 4096;

  private final List<Things> opened = new ArrayList<>();

  /** An operation, the call of the driver it is held in, and what it uses. */
  private record Operation(
      String name, String call, Consumer<Things> work, List<Closing> closings) {
    @Override
    public String toString() {
      return name;
    }
  }

  /** Something that is closed, and the call that gives it back. */
  private enum Closing {
    BUFFER(things -> things.buffer.close(), "memFree"),
    OTHER(things -> things.other.close(), "memFree"),
    PINNED(things -> things.pinned.close(), "memFreeHost"),
    MANAGED(things -> things.managed.close(), "memFree"),
    STREAM(things -> things.stream.close(), "streamDestroy"),
    EVENT(things -> things.event.close(), "eventDestroy"),
    END(things -> things.end.close(), "eventDestroy"),
    GRAPH(things -> things.graph.close(), "graphDestroy"),
    EXECUTABLE(things -> things.executable.close(), "graphExecDestroy"),
    CUDA(things -> things.cuda.close(), "close");

    private final Consumer<Things> close;
    private final String gives;

    Closing(Consumer<Things> close, String gives) {
      this.close = close;
      this.gives = gives;
    }
  }

  private static final class Things {
    final SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    final ScriptedDriver driver = new ScriptedDriver();
    final Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver.over(simulator)));
    final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    final Buffer buffer = MemoryResource.direct().allocate(BYTES, stream);
    final Buffer other = MemoryResource.direct().allocate(BYTES, stream);
    final PinnedBuffer pinned = cuda.directPinned().allocate(BYTES);
    final ManagedBuffer managed = cuda.allocateManaged(BYTES);
    final CudaEvent event = cuda.device(0).createEvent(EventOptions.DEFAULTS);
    final CudaEvent end = cuda.device(0).createEvent(EventOptions.DEFAULTS);
    final DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    final CudaGraph graph = captured(cuda);
    final CudaGraphExec executable = graph.instantiate();
    final MemorySegment host = Arena.ofAuto().allocate(BYTES);

    /** Of a stream of its own: one that was captured is asked in other ways. */
    private static CudaGraph captured(Cuda cuda) {
      try (CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
        return other.capture(() -> {});
      }
    }

    Things() {
      stream.record(event);
      stream.record(end);
      stream.synchronize();
    }
  }

  private static List<Operation> transfers() {
    List<Closing> copied = List.of(Closing.BUFFER, Closing.OTHER, Closing.STREAM, Closing.CUDA);
    List<Closing> filled = List.of(Closing.BUFFER, Closing.STREAM, Closing.CUDA);
    MemoryLocation host = MemoryLocation.host();
    return List.of(
        new Operation("copy", "memcpyAsync", t -> t.buffer.copyFrom(t.other, t.stream), copied),
        new Operation(
            "slices",
            "memcpyAsync",
            t -> t.buffer.slice(8).copyFrom(t.other.slice(0, 8), t.stream),
            copied),
        new Operation(
            "pinned",
            "memcpyAsync",
            t -> t.buffer.copyFrom(t.pinned, t.stream),
            List.of(Closing.BUFFER, Closing.PINNED)),
        new Operation("fill", "memsetD8Async", t -> t.buffer.fill((byte) 1, t.stream), filled),
        new Operation(
            "copyFrom", "memcpyHtoDAsync", t -> t.buffer.copyFrom(t.host, t.stream), filled),
        new Operation("copyTo", "memcpyDtoHAsync", t -> t.buffer.copyTo(t.host, t.stream), filled),
        new Operation(
            "viewCopyFrom",
            "memcpyHtoDAsync",
            t -> t.buffer.copyFrom(t.pinned.segment(), t.stream),
            List.of(Closing.BUFFER, Closing.PINNED, Closing.STREAM)));
  }

  private static List<Operation> handles() {
    List<Closing> queued = List.of(Closing.STREAM, Closing.CUDA);
    List<Closing> marked = List.of(Closing.STREAM, Closing.EVENT, Closing.CUDA);
    List<Closing> seen = List.of(Closing.EVENT, Closing.CUDA);
    List<Closing> managed = List.of(Closing.MANAGED, Closing.CUDA);
    MemoryLocation host = MemoryLocation.host();
    return List.of(
        new Operation("isDone", "streamQuery", t -> t.stream.isDone(), queued),
        new Operation("isCapturing", "streamIsCapturing", t -> t.stream.isCapturing(), queued),
        new Operation("priority", "streamGetPriority", t -> t.stream.priority(), queued),
        new Operation("synchronize", "streamSynchronize", t -> t.stream.synchronize(), queued),
        new Operation("callback", "launchHostFunc", t -> t.stream.onComplete(), queued),
        new Operation(
            "allocate", "memAllocFromPoolAsync", t -> allocate(t), List.of(Closing.STREAM)),
        new Operation("record", "eventRecord", t -> t.stream.record(t.event), marked),
        new Operation("waitFor", "streamWaitEvent", t -> t.stream.waitFor(t.event), marked),
        new Operation("eventIsDone", "eventQuery", t -> t.event.isDone(), seen),
        new Operation("await", "eventSynchronize", t -> t.event.synchronize(), seen),
        new Operation(
            "elapsed",
            "eventElapsedTime",
            t -> CudaEvent.elapsedMillis(t.event, t.end),
            List.of(Closing.EVENT, Closing.END, Closing.CUDA)),
        new Operation(
            "prefetch",
            "memPrefetchAsync",
            t -> t.managed.prefetch(host, t.stream),
            List.of(Closing.MANAGED, Closing.STREAM)),
        new Operation(
            "advise",
            "memAdvise",
            t -> t.managed.advise(MemoryAdvice.SET_READ_MOSTLY, host),
            managed),
        new Operation("advice", "memRangeGetAttribute", t -> t.managed.isReadMostly(), managed),
        new Operation("view", "hostView", t -> t.managed.segment(), managed));
  }

  private static List<Operation> graphs() {
    List<Closing> read = List.of(Closing.GRAPH, Closing.CUDA);
    List<Closing> launched = List.of(Closing.EXECUTABLE, Closing.STREAM, Closing.CUDA);
    return List.of(
        new Operation("toDot", "graphDebugDotPrint", t -> t.graph.toDot(true), read),
        new Operation("copyOfGraph", "graphClone", t -> t.graph.copy().close(), read),
        new Operation(
            "instantiate", "graphInstantiateWithParams", t -> t.graph.instantiate().close(), read),
        new Operation(
            "update",
            "graphExecUpdate",
            t -> t.executable.update(t.graph),
            List.of(Closing.GRAPH, Closing.EXECUTABLE, Closing.CUDA)),
        new Operation("launch", "graphLaunch", t -> t.executable.launch(t.stream), launched),
        new Operation("upload", "graphUpload", t -> t.executable.upload(t.stream), launched));
  }

  private static List<Operation> questions() {
    List<Closing> ended = List.of(Closing.CUDA);
    return List.of(
        new Operation("memoryInfo", "memGetInfo", t -> t.cuda.device(0).memoryInfo(), ended),
        new Operation("name", "deviceGetName", t -> t.cuda.device(0).name(), ended),
        new Operation("attribute", "deviceGetAttribute", t -> t.cuda.device(0).attribute(1), ended),
        new Operation("version", "driverGetVersion", t -> t.cuda.driverVersion(), ended),
        new Operation("limit", "ctxGetLimit", t -> t.cuda.device(0).limit(1), ended),
        new Operation("device", "memAlloc", t -> t.cuda.device(0).synchronize(), ended),
        new Operation(
            "poolAttribute",
            "memPoolGetAttribute",
            t -> t.resource.attributes().usedMemCurrent(),
            ended),
        new Operation(
            "wrap", "pointerGetAttribute", t -> t.cuda.wrap(t.buffer.address(), 8, null), ended),
        new Operation(
            "wrapStream",
            "streamGetDevice",
            t -> t.cuda.device(0).wrapStream(t.stream.handle(), null),
            ended));
  }

  private static void allocate(Things things) {
    things.resource.allocate(BYTES, things.stream).close();
  }

  @TestFactory
  List<DynamicTest> whatACallUses_isGivenBackAfterIt() {
    List<DynamicTest> tests = new ArrayList<>();
    for (List<Operation> operations : List.of(transfers(), handles(), graphs(), questions())) {
      for (Operation operation : operations) {
        for (Closing closing : operation.closings) {
          tests.add(
              DynamicTest.dynamicTest(
                  operation + " beside closing " + closing, () -> closeBeside(operation, closing)));
        }
      }
    }
    return tests;
  }

  private void closeBeside(Operation operation, Closing closing) throws Exception {
    Things things = open();
    long given = things.driver.count(closing.gives);
    Hold hold = things.driver.hold(operation.call);
    FutureTask<?> working = new FutureTask<>(() -> operation.work.accept(things), null);
    Thread worker = Thread.ofPlatform().start(working);
    hold.awaitBegun();
    FutureTask<?> ending = new FutureTask<>(() -> closing.close.accept(things), null);
    Thread closer = Thread.ofPlatform().start(ending);
    awaitWaitingOrDone(closer);
    long before = things.driver.count(closing.gives);
    hold.release();
    worker.join();
    closer.join();
    ending.get();
    outcome(working, closing);
    assertThat(before).as("while it was in the call").isEqualTo(given);
    assertThat(things.driver.count(closing.gives)).isGreaterThan(given);
    things.cuda.close();
    assertThat(things.simulator.report().isEmpty()).as("%s", things.simulator.report()).isTrue();
  }

  /** A call that does not return in time: closing goes on, and the call releases at its end. */
  @Test
  void whatACallUsesForLong_isGivenBackByIt() throws Exception {
    Things things = open();
    long given = things.driver.count("memFree");
    Hold hold = things.driver.hold("memcpyAsync");
    Thread worker =
        Thread.ofPlatform().start(() -> things.buffer.copyFrom(things.other, things.stream));
    hold.awaitBegun();
    things.buffer.close();
    long before = things.driver.count("memFree");
    assertThatThrownBy(() -> things.buffer.fill((byte) 1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    hold.release();
    worker.join();
    assertThat(before).isEqualTo(given);
    assertThat(things.driver.count("memFree")).isGreaterThan(given);
  }

  /** What comes after the call may find everything closed, and says so. */
  private static void outcome(FutureTask<?> working, Closing closing) throws Exception {
    try {
      working.get();
    } catch (ExecutionException e) {
      assertThat(e.getCause())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
      assertThat(closing).isEqualTo(Closing.CUDA);
    }
  }

  private static void awaitWaitingOrDone(Thread thread) {
    while (thread.isAlive()
        && thread.getState() != Thread.State.TIMED_WAITING
        && thread.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
  }

  private Things open() {
    Things things = new Things();
    opened.add(things);
    return things;
  }

  @AfterEach
  void closeAll() {
    opened.forEach(things -> things.cuda.close());
  }
}
