package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.LaunchConfig;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import org.assertj.core.api.SoftAssertions;

/**
 * The null stream takes turns with each stream that is not non-blocking: its work would invalidate
 * a capture of one of these, so it is refused as long as that goes on.
 */
class NullStreamInCaptureTest {
  private static final int BYTES = 4096;

  /** What there was before the capture. */
  private static final class Things implements AutoCloseable {
    final CudaStream other;
    final Buffer one;
    final Buffer two;
    final PinnedBuffer pinned;
    final ManagedBuffer managed;
    final CudaModule module;
    final CudaEvent event;
    final CudaGraphExec executable;
    final MemorySegment host = Arena.ofAuto().allocate(BYTES);

    Things(Cuda cuda, CudaStream other) {
      this.other = other;
      one = MemoryResource.direct().allocate(BYTES, other);
      two = MemoryResource.direct().allocate(BYTES, other);
      pinned = cuda.directPinned().allocate(BYTES);
      managed = cuda.allocateManaged(BYTES);
      module = TestKernels.launches(cuda);
      event = other.record();
      try (CudaGraph graph = other.capture(() -> one.fill((byte) 1, other))) {
        executable = graph.instantiate();
      }
      other.synchronize();
    }

    @Override
    public void close() {
      executable.close();
      event.close();
      module.close();
      managed.close();
      pinned.close();
      two.close();
      one.close();
    }
  }

  private static Map<String, Consumer<CudaStream>> everything(Things t) {
    Map<String, Consumer<CudaStream>> all = new LinkedHashMap<>();
    all.put("fill", s -> t.one.fill((byte) 1, s));
    all.put("copyFrom", s -> t.one.copyFrom(t.two, s));
    all.put("copyFrom pinned", s -> t.one.copyFrom(t.pinned, s));
    all.put("copyFrom segment", s -> t.one.copyFrom(t.host, s));
    all.put("copyTo segment", s -> t.one.copyTo(t.host, s));
    all.put("prefetch", s -> t.managed.prefetch(MemoryLocation.host(), s));
    all.put(
        "launch", s -> s.launch(t.module.kernel("scale"), LaunchConfig.of(1, 32), t.one, 2f, 32));
    all.put("graph launch", t.executable::launch);
    all.put("graph upload", t.executable::upload);
    all.put("record", s -> s.record(t.event));
    all.put("waitFor event", s -> s.waitFor(t.event));
    all.put("waitFor stream", s -> s.waitFor(t.other));
    all.put("addCallback", s -> s.addCallback(() -> {}));
    all.put("onComplete", CudaStream::onComplete);
    all.put("isDone", CudaStream::isDone);
    all.put("synchronize", CudaStream::synchronize);
    all.put("async", s -> MemoryResource.async().allocate(BYTES, s).close());
    return all;
  }

  @CudaTest(simulatedOnly = true)
  void itsWork_isRefusedWhileABlockingStreamCaptures_whichGoesOn(
      Cuda cuda, CudaStream capturing, @NonBlocking CudaStream other) {
    SoftAssertions all = new SoftAssertions();
    try (Things things = new Things(cuda, other)) {
      for (CudaStream stream :
          new CudaStream[] {cuda.device(0).nullStream(), cuda.device(0).legacyStream()}) {
        everything(things)
            .forEach((name, what) -> check(all, name + " on " + stream, capturing, stream, what));
      }
    }
    all.assertAll();
  }

  private static void check(
      SoftAssertions all,
      String name,
      CudaStream capturing,
      CudaStream stream,
      Consumer<CudaStream> what) {
    try {
      Graph.of(capturing, () -> checkRefused(all, name, () -> what.accept(stream))).close();
    } catch (RuntimeException | AssertionError e) {
      all.fail(name, e);
    }
  }

  private static void checkRefused(SoftAssertions all, String name, Runnable call) {
    all.assertThatThrownBy(call::run)
        .as(name)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is capturing a graph");
  }

  /** Nor is memory taken that needs no call of the driver: its work would come in between. */
  @CudaTest(simulatedOnly = true)
  void memoryInItsOrder_isRefused_alsoWhatLiesIdle(
      Cuda cuda, DeviceMemoryResource resource, CudaStream capturing) {
    SoftAssertions all = new SoftAssertions();
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda);
        PinnedMemoryResource pinned = new PinnedMemoryResource(cuda)) {
      Map<String, Function<CudaStream, Buffer>> kinds = new LinkedHashMap<>();
      kinds.put("resource", s -> resource.allocate(BYTES, s));
      kinds.put("pool", s -> pool.allocate(BYTES, s));
      kinds.put("pinned", s -> pinned.allocate(BYTES, s));
      for (CudaStream stream :
          new CudaStream[] {cuda.device(0).nullStream(), cuda.device(0).legacyStream()}) {
        kinds.forEach((name, kind) -> {
          kind.apply(stream).close();
          check(all, name, capturing, stream, s -> kind.apply(s).close());
          kind.apply(stream).close();
        });
      }
    }
    all.assertAll();
  }

  /** Its order is that of all streams, which the device keeps. */
  @CudaTest(simulatedOnly = true)
  void memoryThatWouldBeFreedInItsOrder_isFreedWithoutOne(
      Cuda cuda,
      ScriptedDriver driver,
      DeviceMemoryResource resource,
      CudaStream capturing,
      @NonBlocking CudaStream other) {
    CudaStream home = cuda.device(0).createStream();
    Buffer buffer = resource.allocate(BYTES, home);
    try (Gate _ = Gate.on(other)) {
      buffer.recordUse(other);
      home.close();
      buffer.close();
    }
    cuda.device(0).synchronize(); // what the closed stream had queued as well
    driver.note("memFree", call -> call.number("address") == buffer.address() ? "freed" : null);
    try (Graph _ = Graph.of(capturing, () -> resource.attributes().usedMemCurrent())) {
      assertThat(driver.notes()).containsExactly("freed");
    }
  }
}
