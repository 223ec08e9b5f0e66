package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.SweepReport;
import io.cuvette.testkit.support.Bytes;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Memory of the program that is page-locked: {@link Cuda#registerHost}. */
@Timeout(120)
class RegisteredMemoryTest {
  private static final int MIB = 1 << 20;
  private static final int BYTES = 3 * MIB + 77;

  private static MemorySegment mapped(Path path, FileChannel.MapMode mode, Arena arena)
      throws IOException {
    try (FileChannel file =
        FileChannel.open(
            path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      file.truncate(BYTES);
      return file.map(mode, 0, BYTES, arena);
    }
  }

  /** Who has page-locked it may end that while the device copies. */
  @Test
  void memoryThatAnotherCudaHasRegistered_goesThroughChunks() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
        ScriptedDriver script = new ScriptedDriver();
        Cuda first = Cuda.open(CudaOptions.DEFAULTS.withDriver(ScriptedDriver.keptOpen(driver)));
        Cuda cuda =
            Cuda.open(
                CudaOptions.DEFAULTS
                    .withDriver(ScriptedDriver.keptOpen(driver))
                    .withDecorator(script::over));
        Arena arena = Arena.ofShared();
        Buffer buffer = cuda.allocate(BYTES)) {
      MemorySegment host = arena.allocate(BYTES).fill((byte) 7);
      try (PinnedBuffer _ = first.registerHost(host)) {
        buffer.copyFrom(host);
        assertThat(script.count("memcpyHtoDAsync")).isZero();
        assertThat(Bytes.areAll(buffer, 7)).isTrue();
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void copiesOfMemoryThatIsKnownToBePageLocked_askTheDriverNothing(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) throws Exception {
    try (Arena arena = Arena.ofShared();
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      MemorySegment host = arena.allocate(BYTES).fill((byte) 7);
      try (PinnedBuffer _ = cuda.registerHost(host)) {
        driver.note("pointerGetAttribute");
        buffer.copyFromAsync(host, stream).get(60, TimeUnit.SECONDS);
        assertThat(driver.takeNotes()).isEmpty();
        assertThat(Bytes.areAll(buffer, 7)).isTrue();
      }
    }
  }

  @CudaTest
  void copiesOfRegisteredMemory_goWithoutStaging(ScriptedDriver driver, Cuda cuda) {
    byte[] pattern = Bytes.random(1, BYTES);
    try (Arena arena = Arena.ofShared();
        Buffer buffer = cuda.allocate(BYTES)) {
      MemorySegment host = arena.allocate(BYTES);
      host.copyFrom(MemorySegment.ofArray(pattern));
      long staged = driver.count("memcpyAsync");
      try (PinnedBuffer registered = cuda.registerHost(host)) {
        assertThat(registered.isHostAccessible()).isTrue();
        assertThat(registered.address()).isEqualTo(host.address());
        assertThat(registered.segment()).isEqualTo(host);
        buffer.copyFrom(host);
        host.fill((byte) 0);
        buffer.copyTo(host);
        assertThat(host.mismatch(MemorySegment.ofArray(pattern))).isEqualTo(-1);
        buffer.copyFrom(host.asSlice(5, MIB));
        buffer.copyTo(host.asSlice(0, MIB));
        assertThat(MemorySegment.mismatch(host, 0, MIB, MemorySegment.ofArray(pattern), 5, MIB + 5))
            .isEqualTo(-1);
      }
      assertThat(driver.count("memcpyAsync")).as("copies of chunks").isEqualTo(staged);
      buffer.copyFrom(host);
      assertThat(driver.count("memcpyAsync")).as("pageable again").isGreaterThan(staged);
    }
  }

  @CudaTest
  void registeredBuffer_isABufferLikeOthers(Cuda cuda, CudaStream stream) {
    byte[] pattern = Bytes.random(2, BYTES);
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    host.copyFrom(MemorySegment.ofArray(pattern));
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        PinnedBuffer registered = cuda.registerHost(host)) {
      long type =
          cuda.driver()
              .memory()
              .pointerGetAttribute(0, PointerAttribute.MEMORY_TYPE, host.address());
      assertThat(type).isEqualTo(MemoryType.HOST);
      Buffer wrapped = cuda.wrap(host.address(), BYTES, host);
      assertThat(wrapped).isInstanceOf(PinnedBuffer.class);
      buffer.copyFrom(registered, stream);
      registered.fill((byte) 7, stream);
      registered.slice(9).copyFrom(buffer.slice(9), stream);
      stream.synchronize();
      assertThat(host.get(ValueLayout.JAVA_BYTE, 8)).isEqualTo((byte) 7);
      assertThat(MemorySegment.mismatch(host, 9, BYTES, MemorySegment.ofArray(pattern), 9, BYTES))
          .isEqualTo(-1);
      assertThat(registered.byteBuffer().get(8)).isEqualTo((byte) 7);
    }
    assertThat(host.get(ValueLayout.JAVA_BYTE, 8)).as("still there").isEqualTo((byte) 7);
  }

  @CudaTest
  void arena_cannotBeClosed_untilTheMemoryIsNotRegistered(Cuda cuda) {
    for (int round = 0; round < 50; round++) {
      Arena arena = Arena.ofShared();
      MemorySegment host = arena.allocate(4096);
      PinnedBuffer registered = cuda.registerHost(host);
      assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
      assertThat(host.scope().isAlive()).isTrue();
      registered.fill((byte) 1);
      assertThat(host.get(ValueLayout.JAVA_BYTE, 4095)).isEqualTo((byte) 1);
      registered.close();
      arena.close(); // at once: nothing holds it any more
    }
  }

  @Tag("simulated")
  @Test
  void memoryThatOthersUnregistered_isLetGo_andNotUnregisteredAgain() {
    ScriptedDriver script = new ScriptedDriver().note("memHostUnregister");
    Arena arena = Arena.ofShared();
    try (Cuda cuda =
        Cuda.open(
            CudaOptions.DEFAULTS.withDriver(
                script.over(SimulatedDriver.open(SimulatedOptions.DEFAULTS))))) {
      PinnedBuffer registered = cuda.registerHost(arena.allocate(4096));
      cuda.driver().memory().memHostUnregister(0, registered.address());
      assertThatThrownBy(registered::close)
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("HOST_MEMORY_NOT_REGISTERED");
      arena.close();
    }
    assertThat(script.notes()).as("the other's and ours").hasSize(2);
  }

  @CudaTest
  void closingBesideCopies_endsAfterThem(Cuda cuda, CudaStream stream) throws Exception {
    for (int round = 0; round < 30; round++) {
      Arena arena = Arena.ofShared();
      MemorySegment host = arena.allocate(256 << 10);
      PinnedBuffer registered = cuda.registerHost(host);
      try (Buffer buffer = cuda.allocate(256 << 10, stream);
          var threads = Executors.newVirtualThreadPerTaskExecutor()) {
        buffer.fill(1, stream);
        Future<?> copies =
            threads.submit(() -> {
              for (int i = 0; i < 20; i++) {
                buffer.copyTo(host, stream);
              }
            });
        Thread.yield();
        registered.close();
        try {
          copies.get();
        } catch (java.util.concurrent.ExecutionException e) {
          assertThat(e.getCause())
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed");
        }
        arena.close();
        stream.synchronize();
      }
    }
  }

  @CudaTest
  void whatCannotBeRegistered_isRefusedWithTheReason(Cuda cuda) {
    assertThatThrownBy(() -> cuda.registerHost(MemorySegment.ofArray(new byte[8])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("heap segment of 8 bytes");
    assertThatThrownBy(() -> cuda.registerHost(MemorySegment.NULL))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("segment: 0 bytes (expected: >= 1)");
    try (Arena confined = Arena.ofConfined()) {
      MemorySegment segment = confined.allocate(8);
      assertThatThrownBy(() -> cuda.registerHost(segment))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("segment: %s is confined to a thread", segment)
          .hasMessageContaining("Arena.ofShared()");
    }
    Arena closed = Arena.ofShared();
    MemorySegment gone = closed.allocate(8);
    closed.close();
    assertThatThrownBy(() -> cuda.registerHost(gone))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }

  @CudaTest
  void memoryThatIsPageLocked_isRefused_andStaysAsItWas(Cuda cuda) {
    MemorySegment all = Arena.ofAuto().allocate(4L * MIB);
    try (PinnedBuffer first = cuda.registerHost(all.asSlice(MIB, MIB));
        PinnedBuffer other = cuda.directPinned().allocate(MIB)) {
      for (MemorySegment again :
          List.of(
              all,
              all.asSlice(MIB, MIB),
              all.asSlice(MIB + 4096, 4096),
              all.asSlice(MIB / 2, MIB),
              all.asSlice(3L * MIB / 2, MIB))) {
        assertThatThrownBy(() -> cuda.registerHost(again))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("page-locked already");
      }
      first.fill((byte) 3);
      assertThat(all.get(ValueLayout.JAVA_BYTE, MIB)).isEqualTo((byte) 3);
      assertThat(other.isClosed()).isFalse();
      try (PinnedBuffer beside = cuda.registerHost(all.asSlice(2L * MIB + 4096, MIB))) {
        beside.fill((byte) 4);
      }
    }
    cuda.registerHost(all).close();
  }

  @CudaTest
  void segmentsThatAreRegisteredInPart_areCopiedAllTheSame(Cuda cuda, CudaStream stream) {
    byte[] pattern = Bytes.random(3, BYTES);
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        PinnedBuffer _ = cuda.registerHost(host.asSlice(MIB, MIB))) {
      for (long from : new long[] {0, MIB, MIB + 5, 2L * MIB - 100}) {
        MemorySegment part = host.asSlice(from, Math.min(BYTES - from, 2L * MIB));
        for (MemorySegment each : List.of(part, part.asSlice(0, 200))) {
          each.copyFrom(MemorySegment.ofArray(pattern).asSlice(0, each.byteSize()));
          buffer.copyFrom(each);
          each.fill((byte) 0);
          buffer.copyTo(each, stream);
          stream.synchronize();
          assertThat(
                  MemorySegment.mismatch(
                      each, 0, each.byteSize(), MemorySegment.ofArray(pattern), 0, each.byteSize()))
              .as("%d bytes from %d", each.byteSize(), from)
              .isEqualTo(-1);
        }
      }
    }
  }

  @CudaTest
  void everyKindOfMemoryOffTheHeap_isRegistered(Cuda cuda, @TempDir Path folder)
      throws IOException {
    byte[] pattern = Bytes.random(4, BYTES);
    try (Arena shared = Arena.ofShared();
        Buffer buffer = cuda.allocate(BYTES)) {
      for (MemorySegment host :
          List.of(
              shared.allocate(BYTES),
              Arena.global().allocate(BYTES),
              Arena.ofAuto().allocate(BYTES),
              MemorySegment.ofBuffer(ByteBuffer.allocateDirect(BYTES)),
              mapped(folder.resolve("file"), FileChannel.MapMode.PRIVATE, shared))) {
        host.copyFrom(MemorySegment.ofArray(pattern));
        try (PinnedBuffer registered = cuda.registerHost(host)) {
          buffer.copyFrom(registered);
          registered.fill((byte) 0);
          buffer.copyTo(host);
        }
        assertThat(host.mismatch(MemorySegment.ofArray(pattern))).as("%s", host).isEqualTo(-1);
      }
    }
  }

  @CudaTest
  void readOnlyMemory_isReadByDevices_andWrittenByNobody(
      Cuda cuda, CudaStream stream, @TempDir Path folder) throws IOException {
    byte[] pattern = Bytes.random(5, BYTES);
    Path path = folder.resolve("readOnly");
    try (Arena arena = Arena.ofShared();
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      mapped(path, FileChannel.MapMode.READ_WRITE, arena).copyFrom(MemorySegment.ofArray(pattern));
      MemorySegment file = mapped(path, FileChannel.MapMode.READ_ONLY, arena);
      try (PinnedBuffer registered = cuda.registerHost(file)) {
        buffer.copyFrom(file, stream);
        byte[] back = new byte[BYTES];
        buffer.copyTo(MemorySegment.ofArray(back));
        assertThat(back).isEqualTo(pattern);
        assertThat(registered.segment().isReadOnly()).isTrue();
        List<Runnable> writes =
            List.of(
                () -> registered.fill((byte) 1),
                () -> registered.fill(1, stream),
                () -> registered.copyFrom(buffer),
                () -> registered.slice(4).copyFrom(buffer.slice(4), stream),
                () -> registered.copyFrom(MemorySegment.ofArray(new byte[4])),
                () -> registered.copyFrom(Arena.ofAuto().allocate(4), stream),
                () -> registered.gatherFrom(List.of(MemorySegment.ofArray(new byte[4]))),
                () -> buffer.copyTo(file),
                () -> buffer.copyTo(file, stream));
        for (Runnable write : writes) {
          assertThatThrownBy(write::run)
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("read-only");
        }
      }
    }
  }

  @CudaTest
  void fileThatIsShorterThanItsMapping_isRefused(Cuda cuda, @TempDir Path folder)
      throws IOException {
    for (int round = 0; round < 20; round++) {
      Path path = folder.resolve("short" + round);
      try (Arena arena = Arena.ofShared()) {
        MemorySegment file = mapped(path, FileChannel.MapMode.READ_WRITE, arena);
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
          channel.truncate(MIB);
        }
        assertThatThrownBy(() -> cuda.registerHost(file))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("cannot page-lock")
            .hasMessageNotContaining("%s");
      } // and the arena is not held
    }
  }

  @CudaTest
  void fileThatShrinksWhileItIsRegistered_endsNothing(Cuda cuda, @TempDir Path folder)
      throws IOException {
    for (int round = 0; round < 20; round++) {
      Path path = folder.resolve("shrinks" + round);
      try (Arena arena = Arena.ofShared();
          Buffer buffer = cuda.allocate(BYTES)) {
        MemorySegment file = mapped(path, FileChannel.MapMode.PRIVATE, arena);
        file.asSlice(0, MIB).fill((byte) 9);
        try (PinnedBuffer registered = cuda.registerHost(file)) {
          try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            channel.truncate(2L * MIB);
          }
          buffer.copyFrom(file); // what a device reads behind the end is undefined
          buffer.copyFrom(registered);
          assertThatThrownBy(
                  () -> registered.copyTo(MemorySegment.ofArray(new byte[BYTES]))) // by the host
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("has shrunk");
          byte[] first = new byte[MIB];
          buffer.slice(0, MIB).copyTo(MemorySegment.ofArray(first));
          assertThat(first).containsOnly((byte) 9);
        }
      }
    }
  }

  @CudaTest
  void captureOfRegisteredMemory_keepsItRegistered(Cuda cuda, CudaStream stream) {
    Arena arena = Arena.ofShared();
    MemorySegment host = arena.allocate(256 << 10);
    host.fill((byte) 5);
    try (Buffer buffer = cuda.allocate(256 << 10, stream)) {
      PinnedBuffer registered = cuda.registerHost(host);
      try (var graph = stream.capture(() -> buffer.copyFrom(host, stream));
          var executable = graph.instantiate()) {
        registered.close();
        assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
        executable.launch(stream);
        stream.synchronize();
        byte[] back = new byte[256 << 10];
        buffer.copyTo(MemorySegment.ofArray(back));
        assertThat(back).containsOnly((byte) 5);
      }
    }
    cuda.defaultMemoryPool().freeAllBlocks();
    stream.synchronize();
    cuda.allocatePinned(1).close();
    long _ = cuda.leaksFound();
    arena.close();
  }

  @CudaTest
  void manyThreads_registerTheSameMemory_andOneAtATimeHasIt(Cuda cuda) throws Exception {
    MemorySegment host = Arena.ofAuto().allocate(64 << 10);
    List<Future<?>> all = new ArrayList<>();
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 50; i++) {
        all.add(
            threads.submit(() -> {
              for (int round = 0; round < 20; round++) {
                try (PinnedBuffer registered = cuda.registerHost(host)) {
                  registered.fill((byte) round);
                } catch (IllegalStateException e) {
                  assertThat(e).hasMessageContaining("page-locked already");
                }
              }
            }));
      }
    }
    for (Future<?> each : all) {
      each.get();
    }
    cuda.registerHost(host).close();
  }

  @Tag("simulated")
  @Test
  void closingTheCuda_endsRegistrations_andLetsTheArenaBeClosed() {
    Arena arena = Arena.ofShared();
    MemorySegment host = arena.allocate(4096);
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    PinnedBuffer registered = cuda.registerHost(host);
    cuda.close();
    assertThatThrownBy(() -> registered.fill((byte) 1)).isInstanceOf(IllegalStateException.class);
    arena.close();
  }

  @CudaTest
  void poolsOverRegisteredMemory_lendIt(Cuda cuda) {
    Arena arena = Arena.ofShared();
    try (PinnedMemoryPool pool =
        new PinnedMemoryPool(
            cuda,
            PinnedPoolOptions.DEFAULTS.withUpstream(
                bytes -> cuda.registerHost(arena.allocate(bytes, 4096))))) {
      try (PinnedBuffer one = pool.allocate(1000);
          PinnedBuffer two = pool.allocate(5000);
          Buffer device = cuda.allocate(5000)) {
        two.segment().fill((byte) 8);
        device.copyFrom(two);
        device.copyTo(two.segment().asSlice(0, 5000));
        one.copyFrom(device.slice(0, 1000));
        assertThat(one.segment().get(ValueLayout.JAVA_BYTE, 999)).isEqualTo((byte) 8);
      }
      pool.freeAllBlocks();
    }
    arena.close();
  }

  @Tag("simulated")
  @Test
  void whateverCallFails_nothingStaysRegisteredOrHeld() throws Exception {
    SweepReport report =
        FaultSweeps.onSimulator("seed=1")
            .recoveringFrom(CudaStatus.INVALID_VALUE, "deviceGetAttribute", "pointerGetAttribute")
            .allowing(CudaStatus.HOST_MEMORY_ALREADY_REGISTERED, IllegalStateException.class)
            .allowing(CudaStatus.INVALID_VALUE, IllegalArgumentException.class)
            .allowing(CudaStatus.NOT_PERMITTED, IllegalArgumentException.class)
            .allowing(CudaStatus.NOT_SUPPORTED, IllegalArgumentException.class)
            .run(FaultSweeps.usingTidily(RegisteredMemoryTest::use))
            .orThrow();
    assertThat(report.faults()).isGreaterThan(20);
  }

  private static void use(Cuda cuda) {
    MemorySegment host = Arena.ofAuto().allocate(128 << 10);
    try (Buffer buffer = cuda.allocate(128 << 10);
        PinnedBuffer registered = cuda.registerHost(host)) {
      buffer.copyFrom(host);
      registered.copyFrom(buffer);
    }
  }
}
