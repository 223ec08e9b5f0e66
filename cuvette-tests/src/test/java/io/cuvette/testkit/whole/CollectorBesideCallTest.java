package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GrowableOptions;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** An object whose last use is an operation: it is not forgotten before that has ended. */
@Timeout(120)
class CollectorBesideCallTest {
  /** Enough for the operation to be compiled, which is when its objects are seen as unused. */
  private static final int WARM_UP = 1_000;

  private static final int BYTES = 4096;

  private enum Operation {
    STREAM_QUERY("streamQuery", cuda -> cuda.device(0).createStream().isDone()),
    STREAM_WAIT("streamSynchronize", cuda -> cuda.device(0).createStream().synchronize()),
    EVENT_QUERY("eventQuery", cuda -> cuda.device(0).createEvent().isDone()),
    EVENT_WAIT("eventSynchronize", cuda -> cuda.device(0).createEvent().synchronize()),
    EVENT_RECORD("eventRecord", cuda -> cuda.device(0).createEvent().record()),
    ELAPSED("eventElapsedTime", Operation::elapsed),
    FILL(
        "memsetD8Async",
        cuda ->
            MemoryResource.direct()
                .allocate(BYTES, cuda.currentStream())
                .fill((byte) 1, cuda.currentStream())),
    HEAP_COPY(
        "streamSynchronize",
        cuda ->
            cuda.directPinned().allocate(BYTES).copyFrom(MemorySegment.ofArray(new byte[BYTES]))),
    SLICE_COPY(
        "memcpyHtoDAsync",
        cuda ->
            cuda.allocateManaged(BYTES)
                .slice(8, 8)
                .copyFrom(cuda.allocateManaged(8).segment(), cuda.currentStream())),
    ADVICE("memRangeGetAttribute", cuda -> cuda.allocateManaged(BYTES).isReadMostly()),
    ATTRIBUTE("memPoolGetAttribute", cuda -> resource(cuda).attributes().usedMemCurrent()),
    COPY_BACK(
        "memcpyAsync",
        cuda ->
            MemoryResource.direct()
                .allocate(BYTES, cuda.currentStream())
                .copyTo(MemorySegment.ofArray(new byte[BYTES]))),
    PREFETCH(
        "memPrefetchAsync",
        cuda -> cuda.allocateManaged(BYTES).prefetch(MemoryLocation.device(cuda.device(0)))),
    STREAM_WAITS_FOR_AN_EVENT(
        "streamWaitEvent",
        cuda -> cuda.device(0).createStream().waitFor(cuda.device(0).nullStream().record())),
    STREAM_WAITS_FOR_A_STREAM(
        "streamWaitEvent",
        cuda -> cuda.device(0).createStream().waitFor(cuda.device(0).createStream())),
    CALLBACK("launchHostFunc", cuda -> cuda.device(0).createStream().onComplete()),
    POOL("memAlloc", cuda -> new MemoryPool(cuda).allocate(BYTES).close()),
    POOL_RELEASES("memFree", Operation::release),
    PINNED_POOL("memHostAlloc", cuda -> new PinnedMemoryPool(cuda).allocate(BYTES).close()),
    ASYNC_POOL(
        "memAllocFromPoolAsync",
        cuda -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)).allocate(BYTES).close()),
    RESOURCE("memAllocFromPoolAsync", cuda -> resource(cuda).allocate(BYTES).close()),
    TRIM("memPoolTrimTo", cuda -> resource(cuda).trimTo(0)),
    LIMIT("memPoolSetAttribute", cuda -> resource(cuda).attributes().setReleaseThreshold(1)),
    ELASTIC_POOL("memCreate", cuda -> new ElasticMemoryPool(cuda).allocate(BYTES)),
    GROWTH(
        "memMap", cuda -> cuda.device(0).growable(GrowableOptions.ofMaxBytes(BYTES)).grow(BYTES)),
    LAUNCH(
        "launchKernel",
        cuda ->
            cuda.currentStream()
                .launch(
                    TestKernels.launches(cuda).kernel("scale"),
                    LaunchConfig.of(1, 32),
                    MemoryResource.direct().allocate(BYTES, cuda.currentStream()),
                    2f,
                    32)),
    GRAPH_LAUNCH(
        "graphLaunch", cuda -> captured(cuda).instantiate().launch(cuda.device(0).createStream())),
    GRAPH_UPDATE("graphExecUpdate", cuda -> captured(cuda).instantiate().update(captured(cuda)));

    private final String call;
    private final Consumer<Cuda> work;

    Operation(String call, Consumer<Cuda> work) {
      this.call = call;
      this.work = work;
    }

    private static void release(Cuda cuda) {
      MemoryPool pool = new MemoryPool(cuda);
      pool.allocate(BYTES).close();
      pool.freeAllBlocks();
    }

    private static void elapsed(Cuda cuda) {
      CudaEvent start = cuda.device(0).createEvent();
      CudaEvent end = cuda.device(0).createEvent();
      start.record();
      end.record();
      cuda.currentStream().synchronize();
      CudaEvent.elapsedMillis(start, end);
    }

    private static DeviceMemoryResource resource(Cuda cuda) {
      return new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    }

    private static CudaGraph captured(Cuda cuda) {
      CudaStream stream = cuda.device(0).createStream();
      return stream.capture(() -> stream.captureCallback(() -> {}));
    }
  }

  @ParameterizedTest
  @EnumSource
  void whatACallUses_isNotFoundForgottenBeforeItEnds(Operation operation) throws Exception {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    ScriptedDriver driver = new ScriptedDriver();
    CudaOptions options =
        CudaOptions.DEFAULTS.withDriver(driver.over(simulator)).withLeakListener(_ -> {});
    try (Cuda cuda = Cuda.open(options)) {
      for (int i = 0; i < WARM_UP; i++) {
        operation.work.accept(cuda);
      }
      Hold hold = driver.hold(operation.call);
      FutureTask<?> working = new FutureTask<>(() -> operation.work.accept(cuda), null);
      Thread worker = Thread.ofPlatform().start(working);
      hold.awaitBegun();
      Forgetting.collectAll();
      cuda.leaksFound();
      hold.release();
      worker.join();
      working.get(); // a handle or memory that is gone would fail it
    }
    assertThat(simulator.report().isEmpty()).as("%s", simulator.report()).isTrue();
  }
}
