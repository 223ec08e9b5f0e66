package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Timeout;

/**
 * A launch that is captured keeps its arguments' memory and its kernel as long as a graph can run.
 */
class CapturedLaunchTest {
  private static final int COUNT = 256;
  private static final long BYTES = COUNT * 4L;
  private static final LaunchConfig CONFIG = LaunchConfig.forElements(COUNT, 64);

  private static Buffer ones(MemoryPool pool, CudaStream stream) {
    float[] ones = new float[COUNT];
    Arrays.fill(ones, 1f);
    Buffer buffer = pool.allocate(BYTES, stream);
    buffer.copyFrom(MemorySegment.ofArray(ones));
    stream.synchronize();
    return buffer;
  }

  private static float[] floats(Buffer buffer) {
    float[] content = new float[COUNT];
    buffer.copyTo(MemorySegment.ofArray(content));
    return content;
  }

  /** Takes all that the pool could give out of what it holds, and more; and writes into it. */
  private static void checkNotHandedOut(MemoryPool pool, CudaStream stream, Buffer used) {
    List<Buffer> taken = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      Buffer other = pool.allocate(BYTES, stream);
      assertThat(Math.abs(other.address() - used.address())).isGreaterThanOrEqualTo(BYTES);
      taken.add(other);
    }
    taken.forEach(Buffer::close);
  }

  private static void awaitUnloaded(Cuda cuda, ScriptedDriver script) {
    for (int i = 0; i < 5000 && script.count("libraryUnload") == 0; i++) {
      LockSupport.parkNanos(1_000_000);
      cuda.leaksFound();
      cuda.device(0).createStream().close(); // which looks for what can be released
    }
    assertThat(script.count("libraryUnload")).isEqualTo(1);
  }

  @CudaTest
  void capturedLaunches_runWithEveryReplay_andNotBefore(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    for (int mode : Graph.MODES) {
      try (CudaModule module = TestKernels.launches(cuda);
          Buffer data = ones(pool, stream)) {
        CudaKernel scale = module.kernel("scale");
        KernelArguments packed = scale.pack(data, 3f, COUNT);
        Graph graph =
            Graph.of(
                stream,
                mode,
                () -> {
                  stream.launch(scale, CONFIG, data, 2f, COUNT);
                  packed.launch(stream, CONFIG);
                });
        assertThat(floats(data)).containsOnly(1f);
        graph.launch(stream);
        graph.launch(stream);
        stream.synchronize();
        assertThat(floats(data)).containsOnly(36f);
        graph.close();
      }
    }
    Graph.awaitGone(pool, stream);
  }

  /** The room in which a launch packs its arguments is used again by the next. */
  @CudaTest
  void argumentsOfACapturedLaunch_areThoseOfThatMoment(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer captured = ones(pool, stream);
        Buffer later = ones(pool, other)) {
      CudaKernel scale = module.kernel("scale");
      Graph graph = Graph.of(stream, () -> stream.launch(scale, CONFIG, captured, 2f, COUNT));
      other.launch(scale, CONFIG, later, 5f, COUNT);
      other.synchronize();
      graph.launch(stream);
      stream.synchronize();
      assertThat(floats(captured)).containsOnly(2f);
      assertThat(floats(later)).containsOnly(5f);
      graph.close();
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void memoryOfArguments_isKept_untilGraphAndExecutableAreGone(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream, @NonBlocking CudaStream own) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer result = ones(pool, stream)) {
      CudaKernel add = module.kernel("addVectors");
      for (boolean isPacked : new boolean[] {false, true}) {
        Buffer from = ones(pool, own);
        KernelArguments packed = add.pack(from, from, result, COUNT);
        Graph graph =
            Graph.of(
                stream,
                () -> {
                  if (isPacked) {
                    packed.launch(stream, CONFIG);
                  } else {
                    stream.launch(add, CONFIG, from, from, result, COUNT);
                  }
                });
        from.close();
        own.synchronize();
        stream.synchronize();
        checkNotHandedOut(pool, own, from);
        checkNotHandedOut(pool, stream, from);
        graph.launch(stream);
        graph.destroyGraph();
        stream.synchronize();
        assertThat(floats(result)).containsOnly(2f);
        checkNotHandedOut(pool, own, from);
        graph.close();
        Graph.awaitGone(pool, own);
        assertThatThrownBy(() -> packed.launch(stream, CONFIG)).hasMessageContaining("closed");
      }
    }
    assertThat(pool.stats().usedBytes()).isZero();
  }

  @CudaTest
  void blockOfTheCapture_launchedOnAStreamThatJoined_isKept(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream origin, @NonBlocking CudaStream fork) {
    try (CudaModule module = TestKernels.launches(cuda);
        CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY);
        Buffer result = ones(pool, origin)) {
      CudaKernel add = module.kernel("addVectors");
      CudaKernel scale = module.kernel("scale");
      Buffer[] used = new Buffer[1];
      Graph graph =
          Graph.of(
              origin,
              () -> {
                origin.record(event);
                fork.waitFor(event);
                used[0] = pool.allocate(BYTES, fork);
                used[0].fill(0, fork);
                fork.launch(add, CONFIG, result, used[0], used[0], COUNT);
                used[0].close();
                origin.waitFor(fork);
                origin.launch(scale, CONFIG, result, 2f, COUNT);
              });
      checkNotHandedOut(pool, origin, used[0]);
      checkNotHandedOut(pool, fork, used[0]);
      graph.launch(origin);
      origin.synchronize();
      assertThat(floats(result)).containsOnly(2f);
      graph.close();
      Graph.awaitGone(pool, origin);
    }
  }

  /** Somebody begins it after the library has looked, and before the driver gets the launch. */
  @CudaTest
  void captureThatBeginsInTheMiddleOfALaunch_keepsMemoryAndModule(
      Cuda cuda,
      ScriptedDriver script,
      MemoryPool pool,
      @NonBlocking CudaStream own,
      @NonBlocking CudaStream captured) {
    CaptureCalls captures = cuda.driver().captures();
    long handle = captured.handle();
    CudaModule module = TestKernels.launches(cuda);
    Buffer data = ones(pool, own);
    CudaKernel scale = module.kernel("scale");
    own.launch(scale, CONFIG, data, 1f, COUNT); // loads the code where that is done when first used
    own.synchronize();
    script.answer(
        "launchKernel",
        call -> {
          captures.streamBeginCapture(0, handle, Graph.MODES[0]);
          return call.proceed();
        });
    captured.launch(scale, CONFIG, data, 2f, COUNT);
    long graph = captures.streamEndCapture(0, handle);
    data.close();
    module.close();
    captured.synchronize(); // the graph alone has a use for them now
    checkNotHandedOut(pool, own, data);
    assertThat(script.count("libraryUnload")).isZero();
    cuda.driver().graphs().graphDestroy(graph);
    Graph.awaitGone(pool, own);
    awaitUnloaded(cuda, script);
  }

  @CudaTest
  @Timeout(60)
  void moduleClosedWhileAGraphHasItsKernel_isUnloadedBehindTheLastReplay(
      Cuda cuda, ScriptedDriver script, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer data = ones(pool, stream)) {
      CudaModule module = TestKernels.launches(cuda);
      CudaKernel scale = module.kernel("scale");
      Graph graph = Graph.of(stream, () -> stream.launch(scale, CONFIG, data, 2f, COUNT));
      module.close();
      assertThat(module.isClosed()).isTrue();
      cuda.device(0).synchronize();
      assertThat(script.count("libraryUnload")).isZero();
      graph.launch(stream);
      graph.destroyGraph(); // the executable still has the kernel
      graph.launch(stream);
      stream.synchronize();
      cuda.device(0).synchronize();
      assertThat(script.count("libraryUnload")).isZero();
      assertThat(floats(data)).containsOnly(4f);
      assertThatThrownBy(() -> stream.launch(scale, CONFIG, data, 2f, COUNT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
      graph.close();
      awaitUnloaded(cuda, script);
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  @Timeout(60)
  void moduleClosedInsideTheCapture_isUnloadedBehindTheGraph(
      Cuda cuda, ScriptedDriver script, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (Buffer data = ones(pool, stream)) {
      Graph graph =
          Graph.of(
              stream,
              () -> {
                try (CudaModule module = TestKernels.launches(cuda)) {
                  stream.launch(module.kernel("scale"), CONFIG, data, 2f, COUNT);
                }
              });
      assertThat(script.count("libraryUnload")).isZero();
      graph.launch(stream);
      stream.synchronize();
      assertThat(floats(data)).containsOnly(2f);
      graph.close();
      awaitUnloaded(cuda, script);
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest(tidy = false)
  @Timeout(120)
  void forgottenModule_staysLoaded_asLongAsAGraphHasItsKernel(
      Cuda cuda, ScriptedDriver script, MemoryPool pool, @NonBlocking CudaStream stream)
      throws Exception {
    try (Buffer data = ones(pool, stream)) {
      Graph[] graph = new Graph[1];
      Forgetting.of(() -> {
        CudaModule module = TestKernels.launches(cuda);
        graph[0] =
            Graph.of(stream, () -> stream.launch(module.kernel("scale"), CONFIG, data, 2f, COUNT));
        return module;
      });
      assertThat(
              Forgetting.collectUntil(() -> {
                cuda.device(0).createStream().close();
                return cuda.leaksFound() > 0;
              }))
          .isTrue();
      assertThat(script.count("libraryUnload")).isZero();
      graph[0].launch(stream);
      stream.synchronize();
      assertThat(floats(data)).containsOnly(2f);
      graph[0].close();
      awaitUnloaded(cuda, script);
    }
    Graph.awaitGone(pool, stream);
  }

  @CudaTest
  void launchThatIsRefusedInACapture_leavesItValid(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = ones(pool, stream)) {
      CudaKernel scale = module.kernel("scale");
      Graph graph =
          Graph.of(
              stream,
              () -> {
                assertThatThrownBy(() -> stream.launch(scale, CONFIG, data, 2.0, COUNT))
                    .isInstanceOf(IllegalArgumentException.class);
                stream.launch(scale, CONFIG, data, 2f, COUNT);
              });
      graph.launch(stream);
      stream.synchronize();
      assertThat(floats(data)).containsOnly(2f);
      graph.close();
    }
    Graph.awaitGone(pool, stream);
  }
}
