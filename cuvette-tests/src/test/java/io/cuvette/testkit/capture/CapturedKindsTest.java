package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.GraphDefinition;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/**
 * Memory of every kind stays a graph's as long as that can run, and where it cannot, that is said.
 */
class CapturedKindsTest {
  private static final int BYTES = 4096;

  private static CudaStream stream(Cuda cuda) {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  /** The driver tells on a thread of its own that a graph is gone. */
  private static void await(BooleanSupplier condition) {
    for (int i = 0; i < 5000 && !condition.getAsBoolean(); i++) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(condition.getAsBoolean()).isTrue();
  }

  /**
   * A graph writes into a buffer that is closed: neither may the device fail, nor may the bytes of
   * buffers that are made afterwards change.
   */
  private static void checkReplay(CudaStream stream, Supplier<? extends Buffer> allocate) {
    Buffer used = allocate.get();
    try (MemoryPool witness = new MemoryPool(stream.device().cuda())) {
      Graph graph =
          Graph.of(
              stream,
              () -> {
                witness.allocate(BYTES, stream).close();
                used.fill((byte) 7, stream);
              });
      used.close();
      List<Buffer> others = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        Buffer other = allocate.get();
        other.fill((byte) 1, stream);
        others.add(other);
      }
      graph.launch(stream);
      stream.synchronize();
      for (Buffer other : others) {
        assertThat(Bytes.of(other)).containsOnly(1);
        other.close();
      }
      graph.close();
      Graph.awaitGone(witness, stream);
    }
  }

  @CudaTest
  void memoryOfEveryKind_staysTheGraphs(Cuda cuda, @NonBlocking CudaStream stream) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda);
        DeviceMemoryResource resource = new DeviceMemoryResource(cuda.device(0))) {
      checkReplay(stream, () -> MemoryResource.direct().allocate(BYTES, stream));
      checkReplay(stream, () -> MemoryResource.managed().allocate(BYTES, stream));
      checkReplay(stream, () -> MemoryResource.async().allocate(BYTES, stream));
      checkReplay(stream, () -> pool.allocate(BYTES, stream));
      checkReplay(stream, () -> resource.allocate(BYTES, stream));
      checkReplay(stream, () -> cuda.allocatePinned(BYTES));
      checkReplay(stream, () -> cuda.directPinned().allocate(BYTES));
      cuda.device(0).synchronize();
    }
  }

  @CudaTest
  void plainMemoryTakenInACapture_isFreedWithTheGraph(
      @NonBlocking CudaStream stream, MemoryPool witness) {
    Graph graph =
        Graph.of(
            stream,
            () -> {
              witness.allocate(BYTES, stream).close();
              MemoryResource.direct().allocate(BYTES, stream).close();
              MemoryResource.managed().allocate(BYTES, stream).close();
            });
    graph.launch(stream);
    stream.synchronize();
    graph.close();
    Graph.awaitGone(witness, stream);
  }

  @CudaTest
  void adoptedMemory_isGivenBackOnce_afterTheGraph(Cuda cuda) {
    long address = cuda.driver().memory().memAlloc(0, BYTES);
    AtomicInteger freed = new AtomicInteger();
    try (CudaStream stream = stream(cuda)) {
      Buffer adopted = cuda.device(0).adopt(address, BYTES, freed::incrementAndGet);
      Graph graph = Graph.of(stream, () -> adopted.fill((byte) 1, stream));
      adopted.close();
      cuda.leaksFound();
      assertThat(freed).hasValue(0);
      graph.close();
      await(() -> cuda.leaksFound() == 0 && freed.get() == 1);
    }
    cuda.driver().memory().memFree(0, address);
  }

  @CudaTest
  void pinnedBlock_isNotHandedOut_asLongAsAGraphCopiesIt(
      Cuda cuda, @NonBlocking CudaStream stream) {
    try (Buffer target = cuda.allocate(BYTES, stream)) {
      PinnedBuffer used = cuda.allocatePinned(BYTES);
      Graph graph = Graph.of(stream, () -> target.copyFrom(used, stream));
      used.close();
      List<PinnedBuffer> others = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        others.add(cuda.allocatePinned(BYTES));
      }
      assertThat(others).noneMatch(other -> other.address() == used.address());
      others.forEach(PinnedBuffer::close);
      graph.close();
      await(() -> cuda.defaultPinnedMemoryPool().stats().pendingBytes() == 0);
    }
  }

  @CudaTest
  void memoryOfTheDriversPools_takenInACapture_isTheGraphs(
      Cuda cuda, @NonBlocking CudaStream stream) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda);
        DeviceMemoryResource device = new DeviceMemoryResource(cuda.device(0));
        PinnedMemoryResource pinned = new PinnedMemoryResource(cuda);
        Buffer result = cuda.allocate(BYTES, stream)) {
      for (MemoryResource each : List.of(pool, device, pinned, MemoryResource.async())) {
        each.allocate(BYTES, stream).close(); // idle, and nothing for the capture
        try (CudaGraph graph = stream.capture(() -> fillAndCopy(each, result, stream));
            CudaGraphExec executable = graph.instantiate()) {
          List<Buffer> others = new ArrayList<>();
          for (int i = 0; i < 4; i++) {
            Buffer other = each.allocate(BYTES, stream);
            other.fill((byte) 1, stream);
            others.add(other);
          }
          for (int i = 0; i < 3; i++) {
            result.fill((byte) 9, stream);
            executable.launch(stream);
            stream.synchronize();
            assertThat(Bytes.areAll(result, 7)).isTrue();
          }
          for (Buffer other : others) {
            assertThat(Bytes.areAll(other, 1)).isTrue();
            other.close();
          }
        }
      }
    }
  }

  private static void fillAndCopy(MemoryResource from, Buffer result, CudaStream stream) {
    Buffer kept = from.allocate(BYTES, stream);
    try (Buffer inside = from.allocate(BYTES, stream)) {
      assertThat(inside.address()).isNotEqualTo(kept.address());
      inside.fill((byte) 7, stream);
      kept.copyFrom(inside, stream);
    }
    result.copyFrom(kept, stream);
    kept.close();
  }

  @CudaTest
  void memoryThatACaptureTook_andNobodyUsed_comesBack(Cuda cuda, @NonBlocking CudaStream stream) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      Buffer outlives;
      try (CudaGraph graph = stream.capture(() -> pool.allocate(BYTES, stream).close())) {
        outlives = pool.allocate(BYTES, stream);
        assertThat(graph.isClosed()).isFalse();
      }
      outlives.close();
      await(() -> cuda.leaksFound() == 0 && pool.liveBytes() == 0);
    }
  }

  /** A driver without user objects, that is. */
  @Test
  void wheneverTheEndOfAGraphIsNotKnown_itsMemoryIsRefused_andNeverHandedOut() {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    CudaDriver silent =
        new ScriptedDriver().fail("userObjectCreate", CudaStatus.NOT_SUPPORTED).over(driver);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(silent));
        MemoryPool pool = new MemoryPool(cuda);
        GraphDefinition child = new GraphDefinition(cuda.device(0));
        CudaStream stream = stream(cuda)) {
      Buffer other = pool.allocate(BYTES, stream);
      Buffer used = pool.allocate(BYTES, stream);
      Graph graph =
          Graph.of(
              stream,
              () -> {
                assertThatThrownBy(() -> pool.allocate(BYTES, stream))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("the driver does not tell when that is gone")
                    .hasRootCauseInstanceOf(CudaException.class);
                assertThatThrownBy(() -> MemoryResource.direct().allocate(BYTES, stream))
                    .isInstanceOf(IllegalStateException.class);
                assertThatThrownBy(() -> MemoryResource.async().allocate(BYTES, stream))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageStartingWith("allocate: ");
                assertThatThrownBy(() -> other.fill((byte) 1, stream))
                    .isInstanceOf(IllegalStateException.class);
                assertThatThrownBy(() -> stream.captureChild(child.graph()))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageStartingWith("captureChild: ");
                used.close();
              });
      graph.close();
      assertThat(pool.stats().pendingBytes()).isEqualTo(BYTES);
      assertThat(pool.stats().usedBytes()).isEqualTo(BYTES);
      other.close();
    }
    assertThat(driver.liveAllocations()).isZero();
    driver.close();
  }

  /** The graph may use it as often as it runs, whenever its buffer was closed. */
  @CudaTest(simulatedOnly = true)
  void memoryThatACaptureTook_staysAsLongAsItsGraph(Cuda cuda, @NonBlocking CudaStream stream) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      for (boolean closedWithin : new boolean[] {true, false}) {
        List<Buffer> taken = new ArrayList<>();
        CudaGraph graph =
            stream.capture(() -> {
              taken.add(pool.allocate(BYTES, stream));
              if (closedWithin) {
                taken.getFirst().close();
              }
            });
        taken.getFirst().close();
        for (int i = 0; i < 3; i++) {
          cuda.device(0).synchronize();
          assertThat(pool.liveBytes()).as("closed within: %s", closedWithin).isEqualTo(BYTES);
          try (Buffer next = pool.allocate(BYTES, stream)) {
            assertThat(next.address()).isNotEqualTo(taken.getFirst().address());
          }
        }
        graph.close();
        await(() -> cuda.leaksFound() == 0 && pool.liveBytes() == 0);
      }
    }
  }

  private static CudaGraph closedIn(CudaStream stream, Supplier<Buffer> kind) {
    return stream.capture(() -> {
      try (Scope _ = stream.use()) {
        kind.get().close();
      }
    });
  }

  /** Its address may be a part of what is captured, of which this library hears nothing. */
  @CudaTest(simulatedOnly = true)
  void plainMemoryOfEachKind_thatACaptureTookAndClosed_isTheGraphsIfTheStreamHasIt(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    CudaDevice device = cuda.device(0);
    Buffer base = MemoryResource.direct().allocate(BYTES, stream);
    AtomicInteger released = new AtomicInteger();
    Map<String, Supplier<Buffer>> kinds = new LinkedHashMap<>();
    kinds.put("direct", () -> MemoryResource.direct().allocate(BYTES, stream));
    kinds.put("managed", () -> MemoryResource.managed().allocate(BYTES, stream));
    kinds.put("pinned, of no stream", () -> cuda.directPinned().allocate(BYTES));
    kinds.put("registered, of no stream", () -> cuda.registerHost(Arena.ofAuto().allocate(BYTES)));
    kinds.put(
        "adopted, of no stream",
        () -> device.adopt(base.address(), BYTES, released::incrementAndGet));
    LongSupplier freed =
        () ->
            driver.count("memFree")
                + driver.count("memFreeHost")
                + driver.count("memHostUnregister")
                + released.get();
    kinds.forEach((name, kind) -> {
      int atOnce = name.contains("no stream") ? 1 : 0;
      long before = freed.getAsLong();
      CudaGraph graph = closedIn(stream, kind);
      stream.synchronize();
      assertThat(cuda.leaksFound()).isZero();
      assertThat(freed.getAsLong()).as(name).isEqualTo(before + atOnce);
      graph.close();
      await(() -> cuda.leaksFound() == 0 && freed.getAsLong() > before);
      assertThat(freed.getAsLong()).as(name).isEqualTo(before + 1);
      kind.get().close();
      assertThat(freed.getAsLong()).as("%s outside", name).isEqualTo(before + 2);
    });
    base.close();
  }
}
