package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CaptureMode;
import io.cuvette.CaptureOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphNode;
import io.cuvette.GrowableBuffer;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** Whatever the library does beside a capture that it knows nothing of, the capture goes on. */
class CapturesOfOthersTest {
  private static final int BYTES = 1 << 16;

  private static CudaStream stream(Cuda cuda) {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  /** Everything there is, by name. */
  private static Map<String, Runnable> everything(Cuda cuda) {
    Map<String, Runnable> things = new LinkedHashMap<>();
    things.put("growth, statistics and release of a pool", () -> usePool(cuda));
    things.put("markers of closed buffers", () -> useMarkers(cuda));
    things.put("pinned memory", () -> usePinned(cuda));
    things.put("plain memory", () -> usePlain(cuda));
    things.put("a pool of the driver", () -> useAsyncPool(cuda));
    things.put("a memory resource", () -> useResource(cuda));
    things.put("copies that wait", () -> copy(cuda));
    things.put("streams and events", () -> useStreams(cuda));
    things.put("callbacks", () -> callBack(cuda));
    things.put("attributes", () -> ask(cuda));
    things.put("a wait for the device", () -> cuda.device(0).synchronize());
    things.put("kernels", () -> launch(cuda));
    things.put("graphs", () -> useGraphs(cuda));
    things.put("memory of graphs", () -> useGraphMemory(cuda));
    things.put("memory that is mapped", () -> useMapped(cuda));
    things.put("rows", () -> gather(cuda));
    return things;
  }

  private static void usePool(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = stream(cuda)) {
      pool.allocate(BYTES, stream).close();
      pool.allocate(2 * BYTES, stream).close();
      pool.stats();
      pool.freeAllBlocks();
      pool.allocate(BYTES).close();
    }
  }

  private static void useMarkers(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream own = stream(cuda);
        CudaStream other = stream(cuda)) {
      Buffer used = pool.allocate(BYTES, own);
      for (int i = 0; i < 50; i++) {
        used.fill((byte) i, other);
      }
      used.close();
      pool.stats();
      pool.allocate(BYTES, own).close();
      other.synchronize();
      pool.stats();
    }
  }

  private static void usePinned(Cuda cuda) {
    try (CudaStream stream = stream(cuda);
        Buffer device = cuda.allocate(BYTES, stream)) {
      PinnedBuffer pinned = cuda.allocatePinned(BYTES);
      device.copyFrom(pinned, stream);
      pinned.close();
      cuda.defaultPinnedMemoryPool().freeAllBlocks();
      cuda.directPinned().allocate(BYTES).close();
    }
  }

  private static void usePlain(Cuda cuda) {
    try (CudaStream stream = stream(cuda)) {
      MemoryResource.direct().allocate(BYTES, stream).close();
      MemoryResource.managed().allocate(BYTES, stream).close();
      MemoryResource.async().allocate(BYTES, stream).close();
    }
  }

  private static void useAsyncPool(Cuda cuda) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda);
        CudaStream stream = stream(cuda)) {
      pool.allocate(BYTES, stream).close();
      pool.freeAllBlocks();
      pool.totalBytes();
    }
  }

  private static void useResource(Cuda cuda) {
    try (DeviceMemoryResource resource = new DeviceMemoryResource(cuda.device(0));
        CudaStream stream = stream(cuda)) {
      resource.allocate(BYTES, stream).close();
      resource.attributes().usedMemCurrent();
    }
  }

  private static void copy(Cuda cuda) {
    try (CudaStream stream = stream(cuda);
        Scope _ = stream.use();
        Buffer one = cuda.allocate(BYTES);
        Buffer other = cuda.allocate(BYTES)) {
      one.fill((byte) 5);
      other.copyFrom(one);
      byte[] bytes = new byte[BYTES];
      other.copyTo(MemorySegment.ofArray(bytes));
      assertThat(bytes[BYTES - 1]).isEqualTo((byte) 5);
      other.copyFrom(MemorySegment.ofArray(bytes));
    }
  }

  private static void useStreams(Cuda cuda) {
    try (CudaStream one = stream(cuda);
        CudaStream other = stream(cuda);
        CudaEvent event = one.record()) {
      other.waitFor(event);
      other.waitFor(one);
      event.isDone();
      event.synchronize();
      one.isDone();
      one.priority();
      one.isCapturing();
      other.synchronize();
    }
  }

  private static void callBack(Cuda cuda) {
    try (CudaStream stream = stream(cuda)) {
      AtomicReference<@Nullable Thread> ran = new AtomicReference<>();
      stream.addCallback(() -> ran.set(Thread.currentThread())).join();
      assertThat(ran.get()).isNotNull();
    }
  }

  private static void launch(Cuda cuda) {
    try (CudaModule module = TestKernels.launches(cuda);
        CudaStream stream = stream(cuda);
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 0, stream);
      stream.launch(module.kernel("scale"), LaunchConfig.of(1, 32), buffer, 2f, 32);
      stream.synchronize();
    }
  }

  private static void useGraphs(Cuda cuda) {
    for (CaptureMode mode : CaptureMode.values()) {
      if (mode == CaptureMode.RELAXED || !Thread.currentThread().isVirtual()) {
        useGraphs(cuda, mode);
      }
    }
  }

  private static void useGraphs(Cuda cuda, CaptureMode mode) {
    try (CudaStream stream = stream(cuda);
        Buffer out = cuda.allocate(BYTES, stream);
        GraphMemory memory = cuda.device(0).createGraphMemory(BYTES);
        GraphDefinition definition =
            GraphDefinition.of(
                stream.capture(
                    new CaptureOptions(mode, memory),
                    () -> {
                      try (Buffer step = cuda.allocate(BYTES, stream)) {
                        step.fill((byte) 1, stream);
                        out.copyFrom(step, stream);
                      }
                    }));
        CudaGraph copy = definition.graph().copy();
        CudaGraphExec executable = copy.instantiate()) {
      executable.upload(stream);
      executable.launch(stream);
      executable.update(definition.graph());
      GraphNode _ = definition.after(definition.nodes().iterator().next()).empty();
      assertThat(definition.graph().toDot(true)).startsWith("digraph");
      stream.synchronize();
    }
  }

  private static void useGraphMemory(Cuda cuda) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    try (CudaStream stream = stream(cuda);
        CudaGraph graph =
            stream.capture(() -> {
              try (Buffer step = resource.allocate(BYTES, stream)) {
                step.fill((byte) 1, stream);
              }
            });
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      stream.synchronize();
    }
    resource.trim();
    resource.usedMemHigh();
  }

  private static void useMapped(Cuda cuda) {
    try (CudaStream stream = stream(cuda);
        GrowableBuffer growable = cuda.device(0).growable(4L * BYTES);
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      growable.grow(2L * BYTES);
      growable.fill((byte) 1, stream);
      growable.shrink(BYTES);
      pool.allocate(BYTES, stream).close();
      pool.trim(0);
      stream.synchronize();
    }
  }

  private static void gather(Cuda cuda) {
    try (CudaStream stream = stream(cuda);
        Scope _ = stream.use();
        Buffer buffer = cuda.allocate(BYTES)) {
      List<MemorySegment> rows =
          List.of(
              MemorySegment.ofArray(new byte[BYTES / 2]),
              MemorySegment.ofArray(new byte[BYTES / 2]));
      buffer.gatherFrom(rows);
      buffer.scatterTo(rows);
    }
  }

  private static void ask(Cuda cuda) {
    cuda.device(0).memoryInfo();
    cuda.device(0).name();
    cuda.device(0).attributes();
    cuda.leaksFound();
    cuda.driverVersion();
  }

  @CudaTest
  void everything_leavesCapturesInAnyModeValid(Cuda cuda) {
    for (int mode : Graph.MODES) {
      for (var thing : everything(cuda).entrySet()) {
        check(cuda, mode, thing.getKey(), thing.getValue());
      }
    }
  }

  @CudaTest
  void everythingOnOtherThreads_leavesCapturesInAnyModeValid(Cuda cuda) {
    for (int mode : Graph.MODES) {
      for (var thing : everything(cuda).entrySet()) {
        check(cuda, mode, thing.getKey(), () -> elsewhere(Thread.ofPlatform(), thing.getValue()));
        check(cuda, mode, thing.getKey(), () -> elsewhere(Thread.ofVirtual(), thing.getValue()));
      }
    }
  }

  private static void check(Cuda cuda, int mode, String name, Runnable thing) {
    try (Graph _ = Graph.beside(cuda.driver(), 0, mode, thing)) {
      assertThat(name).isNotNull();
    } catch (RuntimeException | Error e) {
      throw new AssertionError(name + " beside a capture in mode " + mode, e);
    }
  }

  private static void elsewhere(Thread.Builder builder, Runnable thing) {
    AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    Thread thread =
        builder.unstarted(() -> {
          try {
            thing.run();
          } catch (RuntimeException | Error e) {
            failure.set(e);
          }
        });
    thread.start();
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
    if (failure.get() != null) {
      throw new AssertionError(failure.get());
    }
  }

  @CudaTest(tidy = false)
  void forgottenMemory_isTakenBackBesideACapture(Cuda cuda) throws Exception {
    for (int mode : Graph.MODES) {
      try (MemoryPool pool = new MemoryPool(cuda);
          CudaStream stream = stream(cuda);
          CudaStream other = stream(cuda)) {
        Forgetting.of(() -> used(pool.allocate(BYTES, stream), other));
        Forgetting.of(() -> used(MemoryResource.direct().allocate(BYTES, stream), other));
        try (Graph _ =
            Graph.beside(
                cuda.driver(), 0, mode, () -> collectUntil(() -> pool.stats().usedBytes() == 0))) {
          assertThat(pool.stats().usedBytes()).isZero();
        }
      }
    }
  }

  private static Buffer used(Buffer buffer, CudaStream other) {
    buffer.fill((byte) 1, other);
    return buffer;
  }

  private static void collectUntil(BooleanSupplier condition) {
    try {
      assertThat(Forgetting.collectUntil(condition)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @CudaTest
  void closeOfACuda_leavesCapturesOfOthersValid_andEndsItsOwn(Cuda cuda) {
    for (int mode : Graph.MODES) {
      try (Graph _ = Graph.beside(cuda.driver(), 0, mode, () -> closeAnother(cuda, mode))) {
        assertThat(cuda.isClosed()).isFalse();
      }
    }
  }

  /** A Cuda on the same driver that leaves everything to its close. */
  private static void closeAnother(Cuda cuda, int mode) {
    Cuda second =
        Cuda.open(CudaOptions.DEFAULTS.withDriver(ScriptedDriver.keptOpen(cuda.driver())));
    CudaStream captured = stream(second);
    CudaStream other = stream(second);
    Buffer buffer = second.allocate(BYTES, other);
    buffer.fill((byte) 1, other);
    MemoryResource.direct().allocate(BYTES, other).fill((byte) 1, other);
    MemoryResource.async().allocate(BYTES, other).fill((byte) 1, other);
    AsyncMemoryPool pool = new AsyncMemoryPool(second);
    pool.allocate(BYTES, other).fill((byte) 1, other);
    PinnedBuffer pinned = second.allocatePinned(BYTES);
    pinned.copyFrom(buffer, other);
    cuda.driver().captures().streamBeginCapture(0, captured.handle(), mode);
    second.allocate(BYTES, captured).fill((byte) 2, captured);
    buffer.copyFrom(pinned, captured);
    second.close();
  }
}
