package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GrowableBuffer;
import io.cuvette.GrowableOptions;
import io.cuvette.LeakLevel;
import io.cuvette.OpenObject;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.SweepReport;
import io.cuvette.testkit.support.Forgetting;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Buffers that grow at one address. */
class GrowableBufferTest {
  private static final long MIB = 1L << 20;

  private static byte byteAt(Buffer buffer, long offset) {
    byte[] one = new byte[1];
    buffer.slice(offset, 1).copyTo(MemorySegment.ofArray(one));
    return one[0];
  }

  @CudaTest
  void newBuffer_hasNoMemory(Cuda cuda) {
    long free = cuda.device(0).memoryInfo().freeBytes();
    try (GrowableBuffer buffer = cuda.device(0).growable(1L << 40)) {
      assertThat(buffer.byteSize()).isZero();
      assertThat(buffer.blockBytes()).isZero();
      assertThat(buffer.maxBytes()).isEqualTo(1L << 40);
      assertThat(buffer.address()).isNotZero();
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free);
    }
  }

  @CudaTest
  void growing_keepsAddressContentAndViews(Cuda cuda) {
    try (GrowableBuffer buffer = cuda.device(0).growable(256 * MIB)) {
      long address = buffer.address();
      buffer.grow(1000);
      buffer.fill((byte) 7);
      Buffer view = buffer.slice(100, 900);
      for (long size = 2000; size < 40 * MIB; size *= 3) {
        long before = buffer.byteSize();
        buffer.grow(size);
        assertThat(buffer.byteSize()).isEqualTo(size);
        assertThat(buffer.address()).isEqualTo(address);
        buffer.slice(before).fill((byte) 9);
      }
      assertThat(byteAt(view, 899)).isEqualTo((byte) 7);
      assertThat(byteAt(buffer, 1000)).isEqualTo((byte) 9);
      assertThat(byteAt(buffer, buffer.byteSize() - 1)).isEqualTo((byte) 9);
    }
  }

  @CudaTest
  void smallerOrEqualSizes_changeNothing(Cuda cuda) {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      buffer.grow(5 * MIB);
      long held = buffer.blockBytes();
      buffer.grow(5 * MIB);
      buffer.grow(0);
      buffer.shrink(5 * MIB);
      buffer.shrink(64 * MIB);
      assertThat(buffer.byteSize()).isEqualTo(5 * MIB);
      assertThat(buffer.blockBytes()).isEqualTo(held);
    }
  }

  @CudaTest
  void shrinking_givesWholePiecesBack_andViewsOfWhatIsGoneAreRefused(Cuda cuda) {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      for (int step = 1; step <= 8; step++) {
        buffer.grow(step * 2 * MIB);
      }
      buffer.fill((byte) 1);
      Buffer kept = buffer.slice(0, 100);
      Buffer gone = buffer.slice(10 * MIB, 100);
      long free = cuda.device(0).memoryInfo().freeBytes();
      buffer.shrink(4 * MIB);
      assertThat(buffer.blockBytes()).isEqualTo(4 * MIB);
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free + 12 * MIB);
      assertThat(byteAt(kept, 99)).isEqualTo((byte) 1);
      assertThatThrownBy(() -> gone.fill((byte) 2))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("to which it was shrunk");
      assertThatThrownBy(() -> buffer.slice(4 * MIB, 1))
          .isInstanceOf(IndexOutOfBoundsException.class);
      buffer.grow(16 * MIB);
      gone.fill((byte) 2);
      assertThat(byteAt(buffer, 10 * MIB)).isEqualTo((byte) 2);
    }
  }

  @CudaTest(seeds = 20)
  void pendingWork_isDoneBeforeItsMemoryIsUnmapped(Cuda cuda, CudaStream one, CudaStream other) {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      buffer.grow(2 * MIB);
      buffer.grow(8 * MIB);
      buffer.fill((byte) 1, one);
      buffer.slice(6 * MIB).recordUse(other);
      one.waitFor(other);
      buffer.shrink(MIB);
      assertThat(buffer.blockBytes()).isEqualTo(2 * MIB);
      buffer.grow(6 * MIB);
      buffer.fill((byte) 3, other);
    } // freed behind the work
    cuda.device(0).synchronize();
  }

  @CudaTest
  void memoryOfAGraph_isNotShrunk(Cuda cuda, CudaStream stream) {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      buffer.grow(4 * MIB);
      try (CudaGraph graph = stream.capture(() -> buffer.fill((byte) 4, stream));
          CudaGraphExec exec = graph.instantiate()) {
        assertThatThrownBy(() -> buffer.shrink(0))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("a graph uses it");
        assertThat(buffer.byteSize()).isEqualTo(4 * MIB);
        buffer.grow(8 * MIB);
        exec.launch(stream);
        stream.synchronize();
        assertThat(byteAt(buffer, 4 * MIB - 1)).isEqualTo((byte) 4);
      }
      cuda.device(0).synchronize();
      buffer.shrink(0);
      assertThat(buffer.blockBytes()).isZero();
    }
  }

  @CudaTest
  void wrongSizes_areRefused(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    for (long bytes : new long[] {0, -1, Long.MIN_VALUE, 1L << 62, Long.MAX_VALUE}) {
      assertThatThrownBy(() -> device.growable(bytes))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("maxBytes: " + bytes);
    }
    GrowableBuffer buffer = device.growable(10 * MIB);
    buffer.grow(10 * MIB);
    for (long bytes : new long[] {-1, 10 * MIB + 1, 1L << 62}) {
      assertThatThrownBy(() -> buffer.grow(bytes))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("newByteSize: " + bytes);
      assertThatThrownBy(() -> buffer.shrink(bytes)).isInstanceOf(IllegalArgumentException.class);
    }
    buffer.close();
    assertThatThrownBy(() -> buffer.grow(1)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> buffer.shrink(1)).isInstanceOf(IllegalStateException.class);
    buffer.close();
  }

  @CudaTest(memory = "64MiB")
  void growthWithoutMemory_changesNothing_andSaysTheNumbers(Cuda cuda) {
    try (GrowableBuffer buffer = cuda.device(0).growable(1L << 30)) {
      buffer.grow(5 * MIB);
      buffer.fill((byte) 5);
      long held = buffer.blockBytes();
      assertThatThrownBy(() -> buffer.grow(100 * MIB))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              e -> {
                assertThat(e.details().usedBytes()).isEqualTo(5 * MIB);
                assertThat(e.details().heldBytes()).isEqualTo(held).isGreaterThan(5 * MIB);
                assertThat(e.details().freeBytes()).isEqualTo(held - 5 * MIB);
                assertThat(e.requestedBytes()).isEqualTo(95 * MIB);
              });
      assertThat(buffer.byteSize()).isEqualTo(5 * MIB);
      assertThat(buffer.blockBytes()).isEqualTo(held);
      assertThat(byteAt(buffer, 5 * MIB - 1)).isEqualTo((byte) 5);
      buffer.grow(8 * MIB);
    }
  }

  @Test
  void growthThatTheDriverRefuses_saysHowMuchCouldStillBeMapped() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        GrowableBuffer buffer = cuda.device(0).growable(32 * MIB)) {
      buffer.grow(8 * MIB);
      assertThat(buffer.blockBytes()).isEqualTo(8 * MIB);
      script.fail("memCreate", CudaStatus.OUT_OF_MEMORY);
      assertThatThrownBy(() -> buffer.grow(24 * MIB))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              failure -> {
                assertThat(failure.details().requestedBytes()).isEqualTo(16 * MIB);
                assertThat(failure.details().blockBytes()).isEqualTo(16 * MIB);
                assertThat(failure.details().heldBytes()).isEqualTo(8 * MIB);
                assertThat(failure.details().freeBlocks()).isZero();
                assertThat(failure.details().pendingBytes()).isZero();
                assertThat(failure.details().graphBytes()).isZero();
                assertThat(failure.details().largestFreeBytes()).isZero();
                assertThat(failure.details().otherStreamsFreeBytes()).isZero();
              })
          .hasMessageContaining("free %d of a limit of %d".formatted(24 * MIB, 32 * MIB));
    }
  }

  /** It is mapped already, as it could not be unmapped either. */
  @CudaTest(simulatedOnly = true)
  void growthWhoseAccessFails_givesItWhenItIsTriedAgain(Cuda cuda, ScriptedDriver script) {
    try (GrowableBuffer buffer = cuda.device(0).growable(32 * MIB)) {
      script.fail("memSetAccess", CudaStatus.NOT_PERMITTED, 1);
      script.fail("memUnmap", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(() -> buffer.grow(8 * MIB)).isInstanceOf(CudaException.class);
      assertThat(buffer.byteSize()).isZero();
      assertThat(buffer.blockBytes()).isEqualTo(8 * MIB);
      buffer.grow(8 * MIB);
      buffer.fill((byte) 8);
      assertThat(byteAt(buffer, 8 * MIB - 1)).isEqualTo((byte) 8);
    }
  }

  /** They are of 2, 8 or 32 MiB: a sixteenth of what is mapped may be in vain. */
  @CudaTest(simulatedOnly = true)
  void piecesOfALargeBuffer_areLarger(Cuda cuda) {
    try (GrowableBuffer buffer = cuda.device(0).growable(1024 * MIB)) {
      buffer.grow(128 * MIB - 17);
      assertThat(buffer.blockBytes()).isEqualTo(128 * MIB);
      buffer.grow(128 * MIB + 1);
      assertThat(buffer.blockBytes()).isEqualTo(136 * MIB);
      buffer.grow(512 * MIB + 1);
      assertThat(buffer.blockBytes()).isEqualTo(544 * MIB);
    }
  }

  /** A device may have pieces that are larger than those that are mapped at once elsewhere. */
  @CudaTest(simulatedOnly = true)
  void pieces_areMultiplesOfWhatTheDeviceMaps(Cuda cuda, ScriptedDriver script) {
    script.answer("memGetAllocationGranularity", _ -> 64 * MIB);
    script.note("memCreate", call -> call.number("bytes") / MIB + " MiB");
    try (GrowableBuffer buffer = cuda.device(0).growable(256 * MIB)) {
      buffer.grow(1);
      assertThat(script.takeNotes()).containsExactly("64 MiB");
      buffer.grow(64 * MIB + 1);
      assertThat(script.takeNotes()).containsExactly("64 MiB");
      buffer.grow(256 * MIB);
      assertThat(script.takeNotes()).containsExactly("64 MiB", "64 MiB");
      buffer.shrink(65 * MIB);
      assertThat(buffer.blockBytes()).isEqualTo(128 * MIB);
    }
  }

  @Test
  void buffer_isListedByItsName_whileItIsOpen() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL));
        GrowableBuffer buffer = cuda.device(0).growable(3 * MIB)) {
      assertThat(cuda.openObjects())
          .extracting(OpenObject::what)
          .contains(
              "growable buffer of at most %d bytes at 0x%x"
                  .formatted(buffer.maxBytes(), buffer.address()));
    }
  }

  @CudaTest(simulatedOnly = true)
  void growth_givesAccessToWhatIsNewAlone(Cuda cuda, ScriptedDriver script) {
    try (GrowableBuffer buffer = cuda.device(0).growable(32 * MIB)) {
      script.note("memSetAccess", call -> call.number("address") + " " + call.number("bytes"));
      buffer.grow(2 * MIB);
      buffer.grow(MIB);
      buffer.grow(8 * MIB);
      assertThat(script.takeNotes())
          .containsExactly(
              buffer.address() + " " + 2 * MIB, buffer.address() + 2 * MIB + " " + 6 * MIB);
    }
  }

  @CudaTest(memory = "64MiB")
  void growth_takesWhatPoolsCache(Cuda cuda) {
    cuda.allocate(48 * MIB).close();
    try (GrowableBuffer buffer = cuda.device(0).growable(1L << 30)) {
      buffer.grow(40 * MIB);
      assertThat(buffer.byteSize()).isEqualTo(40 * MIB);
    }
  }

  @Test
  void deviceWithoutVirtualMemory_saysWhichPoolToTake() {
    CudaOptions options = CudaOptions.DEFAULTS.withDevice("sim:virtualMemory=false");
    try (Cuda cuda = Cuda.open(options)) {
      assertThatThrownBy(() -> cuda.device(0).growable(MIB))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("MemoryPool");
    }
  }

  @CudaTest(peers = "none", devices = 2)
  void peersWithoutAccess_areRefused(Cuda cuda) {
    GrowableOptions options = GrowableOptions.ofMaxBytes(MIB).withPeers(List.of(cuda.device(1)));
    assertThatThrownBy(() -> cuda.device(0).growable(options))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("device 1 cannot access");
  }

  @CudaTest(devices = 2)
  void peers_copyDirectly(Cuda cuda) {
    CudaDevice owner = cuda.device(0);
    CudaDevice peer = cuda.device(1);
    if (!owner.canAccess(peer) || !peer.canAccess(owner)) {
      return;
    }
    GrowableOptions options = GrowableOptions.ofMaxBytes(8 * MIB).withPeers(List.of(peer));
    try (GrowableBuffer buffer = owner.growable(options);
        CudaStream stream = peer.createStream();
        Buffer there = cuda.allocate(MIB, stream)) {
      buffer.grow(MIB);
      buffer.fill((byte) 6);
      there.copyFrom(buffer, stream);
      stream.synchronize();
      assertThat(byteAt(there, MIB - 1)).isEqualTo((byte) 6);
    }
  }

  @CudaTest
  void legacyHandles_areRefusedWithTheWayOut(Cuda cuda) {
    try (GrowableBuffer buffer = cuda.device(0).growable(8 * MIB)) {
      buffer.grow(MIB);
      assertThatThrownBy(buffer::descriptor)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("expected: memory of a DeviceMemoryResource");
    }
  }

  @CudaTest
  void threads_growShrinkUseAndClose_atOnce(Cuda cuda, CudaStream stream) throws Exception {
    for (int round = 0; round < 6; round++) {
      GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
      AtomicInteger fills = new AtomicInteger();
      try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
        Callable<Void> grows = () -> untilClosed(() -> buffer.grow(12 * MIB));
        Callable<Void> shrinks = () -> untilClosed(() -> buffer.shrink(3 * MIB));
        Callable<Void> uses =
            () ->
                untilClosed(() -> {
                  Buffer part = buffer.slice(Math.max(0, buffer.byteSize() - MIB));
                  part.fill((byte) 1, stream);
                  if (fills.incrementAndGet() == 20) {
                    buffer.close();
                  }
                });
        List<Future<Void>> all =
            List.of(threads.submit(grows), threads.submit(shrinks), threads.submit(uses));
        for (Future<Void> each : all) {
          each.get();
        }
      }
      assertThat(buffer.isClosed()).isTrue();
    }
    stream.synchronize();
  }

  @SuppressWarnings("ThreadPriorityCheck") // there may be fewer processors than threads
  private static Void untilClosed(Runnable step) {
    int sizes = 0;
    while (true) {
      Thread.yield();
      try {
        step.run();
      } catch (IndexOutOfBoundsException e) {
        sizes++; // shrunk between the question and the slice
      } catch (IllegalStateException e) {
        if (e.getMessage().contains("is closed") || sizes > 1_000_000) {
          return null;
        }
      }
    }
  }

  @CudaTest(tidy = false)
  void forgottenBuffer_isFoundByTheCollector(Cuda cuda) throws InterruptedException {
    Forgetting.of(() -> {
      GrowableBuffer buffer = cuda.device(0).growable(MIB);
      buffer.grow(MIB);
      return buffer;
    });
    assertThat(
            Forgetting.collectUntil(() -> {
              cuda.device(0).growable(MIB).close(); // takes back what was found
              return cuda.leaksFound() == 1;
            }))
        .isTrue();
  }

  @Test
  void everyFailingCall_leavesNothing() throws Exception {
    FaultSweep sweep =
        FaultSweeps.onSimulator("seed=1")
            .recoveringFrom(CudaStatus.OUT_OF_MEMORY, "memCreate", "memMap")
            .recoveringFrom(CudaStatus.INVALID_VALUE, "deviceGetAttribute");
    SweepReport report = sweep.run(FaultSweeps.usingTidily(GrowableBufferTest::use)).orThrow();
    assertThat(report.faults()).isGreaterThan(50);
  }

  private static void use(Cuda cuda) {
    try (CudaStream stream = cuda.device(0).createStream();
        GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      buffer.grow(MIB);
      buffer.grow(40 * MIB);
      buffer.fill((byte) 1, stream);
      buffer.shrink(MIB);
      buffer.grow(5 * MIB);
    }
  }
}
