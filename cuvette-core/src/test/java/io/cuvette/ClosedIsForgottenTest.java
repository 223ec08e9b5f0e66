package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.MathLibrary;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.graph.OpenGraphExec;
import io.cuvette.internal.interop.DriverHandle;
import io.cuvette.internal.interop.LibraryHandles;
import io.cuvette.internal.interop.Workspace;
import io.cuvette.internal.stream.DriverStream;
import java.lang.foreign.Arena;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A Cuda that lives long keeps nothing of what was closed. */
@Timeout(60)
class ClosedIsForgottenTest {

  /** What the library has of a buffer, which is closed. */
  private static WeakReference<Object> closed(Buffer buffer) {
    Object block = ((BufferBase) buffer).block();
    buffer.close();
    return new WeakReference<>(block);
  }

  private static WeakReference<Object> closed(DeviceMemoryResource resource) {
    Object pool = resource.pool();
    resource.allocate(64).close();
    resource.close();
    return new WeakReference<>(pool);
  }

  /** Each kind that the library does not cache. */
  private static Map<String, WeakReference<Object>> closedMemory(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    CudaStream stream = device.createStream();
    Buffer plain = MemoryResource.direct().allocate(64, stream);
    Map<String, WeakReference<Object>> all = new LinkedHashMap<>();
    all.put("wrapped", closed(device.wrap(plain.address(), 64, plain)));
    all.put("adopted", closed(device.adopt(plain.address(), 64, () -> {})));
    all.put("plain", closed(plain));
    all.put("none", closed(MemoryResource.direct().allocate(0, stream)));
    all.put("managed", closed(cuda.allocateManaged(64)));
    all.put("pinned", closed(cuda.directPinned().allocate(64)));
    all.put("registered", closed(cuda.registerHost(Arena.ofAuto().allocate(64))));
    all.put("growable", closed(device.growable(1 << 20)));
    var defaults = DeviceMemoryResourceOptions.DEFAULTS;
    all.put("a pool of the driver", closed(new DeviceMemoryResource(device, defaults)));
    all.put("large", closed(MemoryResource.async().allocate(100L << 20, stream)));
    stream.synchronize();
    device.synchronize();
    stream.close();
    return all;
  }

  @Test
  void closedMemoryOfEachKind_isNotKeptByItsCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Map<String, WeakReference<Object>> all = closedMemory(cuda);
      boolean _ =
          Tries.isCollected(() -> {
            all.values().removeIf(each -> each.refersTo(null));
            return all.isEmpty();
          });
      assertThat(all.keySet()).isEmpty();
    }
  }

  /** What its end lets go of. */
  private static WeakReference<Object> closedGraph(CudaDevice device) {
    try (GraphDefinition definition = new GraphDefinition(device)) {
      return new WeakReference<>(definition.graph().core().retained());
    }
  }

  private static WeakReference<Object> closedExecutable(CudaDevice device) {
    try (GraphDefinition definition = new GraphDefinition(device)) {
      OpenGraphExec executable = OpenGraphExec.of(definition.graph().core(), GraphOptions.DEFAULTS);
      executable.close();
      return new WeakReference<>(executable.retained());
    }
  }

  @Test
  void closedGraphsAndExecutables_areNotKeptByTheirCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      CudaDevice device = cuda.device(0);
      checkForgotten(closedGraph(device));
      checkForgotten(closedExecutable(device));
    }
  }

  /** One more than are kept for others. */
  private static WeakReference<Object> destroyedHandle(CudaDevice device) {
    LibraryHandles handles = device.cuda().engine().libraryHandles();
    List<DriverHandle> lent = new ArrayList<>();
    for (int i = 0; i < 9; i++) {
      lent.add(
          handles.lend(
              MathLibrary.CUSOLVER_SP,
              device.core(),
              device.nullStream().core(),
              0,
              (bytes, stream) -> new Workspace(0, 0, () -> {})));
    }
    lent.forEach(each -> handles.end(each, each).close(each));
    return new WeakReference<>(lent.getLast());
  }

  @Test
  void destroyedHandleOfALibrary_isNotKeptByItsCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      checkForgotten(destroyedHandle(cuda.device(0)));
    }
  }

  private static WeakReference<Object> briefStream(CudaDevice device) {
    try (CudaStream stream = device.createStream()) {
      return new WeakReference<>(stream.core().state);
    }
  }

  @Test
  void closedStreams_areNotKeptByTheirCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      checkForgotten(briefStream(cuda.device(0)));
    }
  }

  private static WeakReference<Object> streamOfAThread(CudaDevice device)
      throws InterruptedException {
    List<WeakReference<Object>> made = new ArrayList<>();
    Runnable asks =
        () -> made.add(new WeakReference<>(device.perThreadStream().core().state.ending()));
    Thread.ofPlatform().start(asks).join();
    return made.getFirst();
  }

  /** Threads come and go. */
  @Test
  void streamsOfThreadsThatAreGone_areNotKeptByTheirCuda() throws InterruptedException {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      WeakReference<Object> first = streamOfAThread(cuda.device(0));
      for (int i = 0; i < 200 && !first.refersTo(null); i++) {
        System.gc();
        assertThat(streamOfAThread(cuda.device(0))).isNotNull();
      }
      checkForgotten(first);
    }
  }

  /** A thread that has memory in its own stream, and has ended. */
  private static WeakReference<Object> threadThatAllocates(CudaDevice device, MemoryResource pool)
      throws InterruptedException {
    Thread thread =
        Thread.ofPlatform()
            .start(() -> {
              CudaStream own = device.perThreadStream();
              try (Buffer buffer = pool.allocate(512, own)) {
                buffer.fill((byte) 1, own);
                own.synchronize();
              }
            });
    thread.join();
    return new WeakReference<>(thread);
  }

  @Test
  void threadsThatAllocatedInTheirOwnStreams_areNotKept_norIsTheirMemory()
      throws InterruptedException {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool pool = new MemoryPool(cuda)) {
      List<WeakReference<Object>> threads = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        threads.add(threadThatAllocates(cuda.device(0), pool));
      }
      assertThat(pool.totalBytes()).isLessThan(20 * 512);
      CudaStream _ = cuda.device(0).perThreadStream();
      cuda.device(0).synchronize();
      briefStream(cuda.device(0)); // looks at the marks of those that are gone
      assertThat(pool.trim(Duration.ZERO)).isPositive();
      threads.forEach(ClosedIsForgottenTest::checkForgotten);
    }
  }

  /** What has the memory of a stream in a capture. */
  private static WeakReference<Object> capturedIn(CudaStream stream, MemoryPool pool) {
    List<WeakReference<Object>> found = new ArrayList<>();
    CudaGraph graph =
        stream.capture(() -> {
          pool.allocate(1, stream).close();
          DriverStream state = stream.core().state;
          Capture capture = Objects.requireNonNull(state.capture());
          found.add(new WeakReference<>(state.streams.ofCapture(state, capture)));
        });
    graph.close();
    return found.getFirst();
  }

  /** A server may capture as long as it runs. */
  @Test
  void captureWhoseGraphIsGone_isNotKeptByItsCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        CudaStream stream = cuda.device(0).createStream();
        MemoryPool pool = new MemoryPool(cuda)) {
      WeakReference<Object> captured = capturedIn(stream, pool);
      assertThat(capturedIn(stream, pool)).as("the last one may be kept").isNotNull();
      for (int i = 0; i < 200 && !captured.refersTo(null); i++) {
        cuda.device(0).synchronize();
        assertThat(cuda.leaksFound()).as("what is over is looked for").isZero();
        System.gc();
      }
      checkForgotten(captured);
    }
  }

  /** Something that nothing but the pool knows. */
  private static WeakReference<Object> closedPool(Cuda cuda) {
    MemoryHook known = new MemoryHook() {};
    MemoryPool pool = new MemoryPool(cuda);
    Registration _ = pool.addHook(known);
    pool.allocate(1).close();
    pool.close();
    return new WeakReference<>(known);
  }

  private static WeakReference<Object> closedElasticPool(Cuda cuda, boolean isUsedThen) {
    MemoryHook known = new MemoryHook() {};
    ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
    Registration _ = pool.addHook(known);
    Buffer buffer = pool.allocate(1);
    if (isUsedThen) {
      pool.close();
      buffer.close();
    } else {
      buffer.close();
      pool.close();
    }
    return new WeakReference<>(known);
  }

  /** Closes a pool as a thread is about to map memory, which that thread cannot use any more. */
  private static final class Closing implements MemoryHook {
    private @Nullable ElasticMemoryPool pool;

    @Override
    public void allocPreprocess(Growth growth) {
      OnThreads.run(1, _ -> Objects.requireNonNull(pool).close());
      throw new UnsupportedOperationException("closed");
    }
  }

  private static WeakReference<Object> elasticPoolClosedMeanwhile(Cuda cuda) {
    Closing known = new Closing();
    ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
    known.pool = pool;
    Registration _ = pool.addHook(known);
    assertThatThrownBy(() -> pool.allocate(1)).hasMessage("closed");
    return new WeakReference<>(known);
  }

  @Test
  void closedElasticPool_isNotKeptByItsCuda_wheneverItWasClosed() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      checkForgotten(closedElasticPool(cuda, false));
      checkForgotten(closedElasticPool(cuda, true));
      checkForgotten(elasticPoolClosedMeanwhile(cuda));
    }
  }

  @Test
  void closedPool_isNotKeptByItsCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      checkForgotten(closedPool(cuda));
    }
  }

  @Test
  void memoryThatWentBackUpstream_isNotKeptByItsPool() {
    List<WeakReference<Object>> chunks = new ArrayList<>();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      PinnedAllocator upstream =
          bytes -> {
            PinnedBuffer chunk = cuda.directPinned().allocate(bytes);
            chunks.add(new WeakReference<>(chunk));
            return chunk;
          };
      PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withUpstream(upstream);
      try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
        pool.allocate(1).close();
        assertThat(pool.freeAllBlocks()).isPositive();
        checkForgotten(chunks.getFirst());
      }
    }
  }

  private static WeakReference<Object> closedStream(CudaDevice device) throws Exception {
    try (CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING)) {
      for (int i = 0; i < 3; i++) {
        stream.addCallback(() -> {}).get();
      }
      stream.synchronize();
      return new WeakReference<>(stream.state);
    }
  }

  @Test
  void closedStreamThatHadCallbacks_isNotKeptByItsCuda() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      WeakReference<Object> closed = closedStream(cuda.device(0));
      cuda.device(0).synchronize();
      checkForgotten(closed);
    }
  }

  private static WeakReference<Object> waitedForBy(CudaStream stream, CudaDevice device) {
    try (CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = MemoryResource.direct().allocate(64, other)) {
      buffer.fill((byte) 1, other);
      stream.waitFor(other);
      buffer.fill((byte) 2, stream);
      stream.synchronize();
      return new WeakReference<>(other.state.clock);
    }
  }

  @Test
  void closedStream_keepsNoneThatItWaitedFor() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      CudaStream kept = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      WeakReference<Object> other = waitedForBy(kept, cuda.device(0));
      kept.close();
      checkForgotten(other);
      Reference.reachabilityFence(kept);
    }
  }

  private static WeakReference<Object> closedBeforeItsMemory(CudaDevice device, MemoryPool pool) {
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    Buffer buffer = pool.allocate(64, stream);
    stream.close();
    buffer.close();
    return new WeakReference<>(stream.state);
  }

  @Test
  void closedStream_isNotKeptByAPool_whoseIdleMemoryWentBack() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool pool = new MemoryPool(cuda)) {
      WeakReference<Object> closed = closedBeforeItsMemory(cuda.device(0), pool);
      assertThat(pool.trim(Duration.ZERO)).isPositive();
      checkForgotten(closed);
    }
  }

  private static void checkForgotten(WeakReference<Object> closed) {
    assertThat(Tries.isCollected(() -> closed.refersTo(null))).isTrue();
  }
}
