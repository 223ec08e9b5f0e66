package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.Latches;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Page-locked memory that the host changes while queued work reads it. */
class SanitizerHostRaceTest {
  private static final long BYTES = 4096;
  private static final long LONG_BYTES = 3 << 20;

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();

  /** A driver with a stream and two kinds of memory. */
  private final class Machine implements AutoCloseable {
    final SanitizerDriver driver;
    final long stream;
    final long memory;
    final MemorySegment pinned;

    Machine(long seed) {
      driver =
          SanitizerDriver.reporting(
              SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed)),
              reports::add,
              Misuse.LEAK);
      stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      memory = driver.memory().memAlloc(0, BYTES);
      pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    }

    void send(MemorySegment source) {
      driver.transfers().memcpyHtoDAsync(0, memory, source, stream);
    }

    void synchronize() {
      driver.streams().streamSynchronize(0, stream);
    }

    @Override
    public void close() {
      driver.close();
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 7, 42})
  void memoryFilledAfterItsCopyWasQueued_isNamed_whateverTheSeed(long seed)
      throws InterruptedException {
    try (Machine on = new Machine(seed)) {
      NewThread.run(() -> on.send(on.pinned.asSlice(16, 64)));
      on.pinned.fill((byte) 2);
      on.synchronize();

      assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
      assertThat(reports.getFirst().message())
          .contains("read of 64 bytes")
          .contains("on stream 0x%x".formatted(on.stream))
          .contains("block 0x%x of 4096 bytes".formatted(on.pinned.address()));
      assertThat(reports.getFirst().sites().getFirst().call()).startsWith("memcpyHtoDAsync(");
      assertThat(reports.getFirst().sites().getFirst().getStackTrace())
          .extracting(StackTraceElement::getMethodName)
          .contains("send");
    }
  }

  @Test
  void memoryBesideTheCopy_andMemoryOfDoneCopies_mayBeChanged() {
    try (Machine on = new Machine(1)) {
      on.driver.transfers().memcpyAsync(0, on.memory, on.pinned.address(), BYTES / 2, on.stream);
      on.pinned.asSlice(BYTES / 2).fill((byte) 1);
      on.synchronize();
      on.pinned.fill((byte) 2);
      on.driver.transfers().memcpyAsync(0, on.memory, on.pinned.address(), BYTES, on.stream);
      on.driver.devices().ctxSynchronize(0);
      on.pinned.fill((byte) 3);
      on.driver.devices().ctxSynchronize(0);
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatOneStreamReads_isLookedAt_thoughAnotherIsDone() {
    try (Machine on = new Machine(3)) {
      long other = on.driver.streams().streamCreateWithPriority(0, 1, 0);
      on.send(on.pinned);
      on.driver.streams().streamSynchronize(0, other);
      on.pinned.fill((byte) 2);
      on.synchronize();
      assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
    }
  }

  /** It is one mistake: where memory ends it is not compared any more. */
  @Test
  void memoryThatEndsWhileWorkReadsIt_isNamedForThatAlone() {
    try (Machine on = new Machine(3);
        Arena arena = Arena.ofConfined()) {
      MemorySegment registered = arena.allocate(BYTES, BYTES);
      on.driver.memory().memHostRegister(0, registered, 0);
      on.send(registered);
      registered.fill((byte) 3);
      on.driver.memory().memHostUnregister(0, registered.address());
      on.synchronize();
    }
    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void memoryThatTheDeviceWrites_beforeOrAfter_isNotOfTheHost() {
    try (Machine on = new Machine(1)) {
      on.driver.transfers().memsetD8Async(0, on.memory, (byte) 5, BYTES, on.stream);
      on.send(on.pinned);
      on.driver.transfers().memsetD8Async(0, on.memory, (byte) 6, BYTES, on.stream);
      on.driver.transfers().memcpyDtoHAsync(0, on.pinned, on.memory, on.stream);
      on.send(on.pinned);
      on.synchronize();
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void hostFunction_mayFillMemory_beforeACopyAndAfterOne() {
    try (Machine on = new Machine(1)) {
      on.send(on.pinned);
      on.driver.streams().launchHostFunc(0, on.stream, () -> on.pinned.fill((byte) 8));
      on.send(on.pinned);
      on.synchronize();
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatIsFreed_isNotLookedAt() {
    try (Machine on = new Machine(1)) {
      on.send(on.pinned);
      on.synchronize();
      on.driver.memory().memFreeHost(0, on.pinned.address());
      on.driver.devices().ctxSynchronize(0);
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatTheHostSeesElsewhere_isTheSameMemory() {
    try (Machine on = new Machine(1);
        Arena arena = Arena.ofConfined()) {
      MemorySegment view = on.driver.memory().hostView(0, on.pinned.address(), BYTES, arena);
      assertThat(view.address()).isNotEqualTo(on.pinned.address());
      on.send(view.asSlice(8, 16));
      view.set(ValueLayout.JAVA_BYTE, 9, (byte) 3);
      on.synchronize();
    }
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
  }

  @Test
  void memoryOfAHostPool_isLookedAtOnceTheHostSeesIt() {
    try (Machine on = new Machine(1);
        Arena arena = Arena.ofConfined()) {
      long pool = on.driver.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0));
      long block = on.driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, on.stream);
      MemorySegment view = on.driver.memory().hostView(0, block, BYTES, arena);
      on.driver.transfers().memcpyAsync(0, on.memory, block, BYTES, on.stream);
      view.set(ValueLayout.JAVA_BYTE, 9, (byte) 3);
      on.synchronize();
    }
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
  }

  /** The first work after the allocation, in the same stream. */
  @Test
  void memoryOfAHostPoolThatADeviceFillsBefore_mayChange() {
    try (Machine on = new Machine(3);
        Arena arena = Arena.ofConfined()) {
      long pool = on.driver.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0));
      long block = on.driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, on.stream);
      MemorySegment _ = on.driver.memory().hostView(0, block, BYTES, arena);
      on.driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
      on.driver.transfers().memsetD8Async(0, block, (byte) 5, BYTES, on.stream);
      on.driver.transfers().memcpyAsync(0, on.memory, block, BYTES, on.stream);
      on.synchronize();
    }
    assertThat(reports).isEmpty();
  }

  /** A view may end, and begin in the middle. */
  @Test
  void memoryOfAHostPool_isLookedAtThroughTheViewThatLives() {
    try (Machine on = new Machine(1);
        Arena arena = Arena.ofConfined()) {
      long pool = on.driver.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0));
      long block = on.driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, on.stream);
      try (Arena before = Arena.ofConfined()) {
        on.driver.memory().hostView(0, block, BYTES, before).fill((byte) 1);
      }
      long half = BYTES / 2;
      MemorySegment view = on.driver.memory().hostView(0, block + half, half, arena);
      on.driver.transfers().memcpyAsync(0, on.memory, block + half + 64, 64, on.stream);
      view.set(ValueLayout.JAVA_BYTE, 63, (byte) 3);
      view.set(ValueLayout.JAVA_BYTE, 128, (byte) 3);
      on.synchronize();
      assertThat(reports).isEmpty();
      on.driver.transfers().memcpyAsync(0, on.memory, block + half + 64, 64, on.stream);
      view.set(ValueLayout.JAVA_BYTE, 64, (byte) 3);
      on.synchronize();
    }
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
  }

  @Test
  void memoryOfTheProgram_isLookedAt_fromItsRegistrationOn() {
    try (Machine on = new Machine(1);
        Arena arena = Arena.ofConfined()) {
      MemorySegment registered = arena.allocate(BYTES, BYTES);
      on.driver.memory().memHostRegister(0, registered, 0);
      on.send(registered.asSlice(64, 64));
      registered.set(ValueLayout.JAVA_BYTE, 100, (byte) 3);
      on.synchronize();
      on.driver.memory().memHostUnregister(0, registered.address());
    }
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
  }

  /** However many pieces there are, each is known to be the device's. */
  @Test
  void manyPiecesThatTheDeviceWrites_areNotOfTheHost() {
    try (Machine on = new Machine(1)) {
      on.driver.transfers().memsetD8Async(0, on.memory, (byte) 5, BYTES, on.stream);
      on.send(on.pinned.asSlice(0, 64)); // the first of many
      on.driver.transfers().memsetD8Async(0, on.memory, (byte) 5, BYTES, on.stream);
      for (long at = 0; at < BYTES; at += 8) {
        MemorySegment piece = on.pinned.asSlice(at, 4);
        on.driver.transfers().memcpyDtoHAsync(0, piece, on.memory, on.stream);
      }
      on.synchronize();
    }
    assertThat(reports).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void managedMemory_isLookedAt_whereTheHostMayTouchItAtAll(boolean atOnce) {
    SimulatedOptions options = SimulatedOptions.parse("seed=1,concurrentManaged=" + atOnce);
    try (SanitizerDriver driver =
        SanitizerDriver.reporting(SimulatedDriver.open(options), reports::add, Misuse.LEAK)) {
      long memory = driver.memory().memAlloc(0, BYTES);
      long address = driver.memory().memAllocManaged(0, BYTES, 1).address();
      MemorySegment managed = driver.memory().hostView(0, address, BYTES, Arena.global());
      managed.fill((byte) 1);
      driver.transfers().memcpyAsync(0, memory, address, BYTES, 0);
      if (atOnce) {
        managed.set(ValueLayout.JAVA_BYTE, 9, (byte) 3);
      }
      driver.streams().streamSynchronize(0, 0);
      driver.transfers().memcpyAsync(0, memory, address, BYTES, 0);
      driver.transfers().memsetD8Async(0, address, (byte) 4, BYTES, 0);
      driver.streams().streamSynchronize(0, 0);
    }
    assertThat(reports).hasSize(atOnce ? 1 : 0);
  }

  /** Work that needs the memory but not its content is no read. */
  @Test
  void managedMemoryThatIsPrefetched_mayBeChangedMeanwhile() {
    SimulatedOptions options = SimulatedOptions.parse("pace=lazy,concurrentManaged=true");
    try (SanitizerDriver driver =
        SanitizerDriver.reporting(SimulatedDriver.open(options), reports::add, Misuse.LEAK)) {
      MemorySegment managed = driver.memory().memAllocManaged(0, BYTES, 1);
      managed.fill((byte) 1);
      driver.memory().memPrefetchAsync(0, managed.address(), BYTES, 1, 0, 0);
      managed.fill((byte) 2);
      driver.streams().streamSynchronize(0, 0);
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void middleOfALargeCopy_isLookedAt() {
    long bytes = 8L << 20;
    try (Machine on = new Machine(1)) {
      long memory = on.driver.memory().memAlloc(0, bytes);
      MemorySegment pinned = on.driver.memory().memHostAlloc(0, bytes, 0);
      on.driver.transfers().memcpyAsync(0, memory, pinned.address(), bytes, on.stream);
      pinned.set(ValueLayout.JAVA_BYTE, bytes / 2, (byte) 3);
      on.synchronize();
    }
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
  }

  /** Only the beginning and the end are compared of what is longer. */
  @ParameterizedTest
  @ValueSource(longs = {0, LONG_BYTES - 1})
  void endsOfALongCopy_areCompared(long changed) {
    try (Machine on = new Machine(1)) {
      long memory = on.driver.memory().memAlloc(0, LONG_BYTES);
      MemorySegment pinned = on.driver.memory().memHostAlloc(0, LONG_BYTES, 0);
      on.driver.transfers().memcpyHtoDAsync(0, memory, pinned, on.stream);
      pinned.set(ValueLayout.JAVA_BYTE, changed, (byte) 1);
      on.synchronize();
    }
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
  }

  /** Nobody sees what a graph writes, here memory that a copy before it reads. */
  @Test
  void graph_mayChangeWhatCopiesBeforeItRead() {
    try (Machine on = new Machine(1)) {
      on.driver.transfers().memsetD8Async(0, on.memory, (byte) 5, BYTES, on.stream);
      on.driver.captures().streamBeginCapture(0, on.stream, 2);
      on.driver.transfers().memcpyDtoHAsync(0, on.pinned, on.memory, on.stream);
      long graph = on.driver.captures().streamEndCapture(0, on.stream);
      long executable = on.driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
      long other = on.driver.memory().memAlloc(0, BYTES);
      on.driver.transfers().memcpyHtoDAsync(0, other, on.pinned, on.stream);
      on.driver.graphs().graphLaunch(0, executable, on.stream);
      on.synchronize();
      assertThat(on.pinned.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 5);
      on.driver.graphs().graphExecDestroy(executable);
      on.driver.graphs().graphDestroy(graph);
    }
    assertThat(reports).isEmpty();
  }

  /** Of a graph that was instantiated elsewhere it is not known what it writes. */
  @Test
  void graphOfSomebodyElse_mayChangeWhatCopiesBeforeItRead() {
    try (Machine on = new Machine(1)) {
      var unseen = on.driver.delegate().graphs();
      long graph = unseen.graphCreate();
      var fill = new GraphNodeParams.Fill(on.pinned.address(), 5, 1, BYTES);
      assertThat(unseen.graphAddNode(0, graph, new long[0], fill)).isNotNull();
      long executable = unseen.graphInstantiateWithParams(0, graph, 0, 0).executable();
      on.send(on.pinned);
      on.driver.graphs().graphLaunch(0, executable, on.stream);
      on.synchronize();
      assertThat(on.pinned.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 5);
      unseen.graphExecDestroy(executable);
      unseen.graphDestroy(graph);
    }
    assertThat(reports).isEmpty();
  }

  private void changeUnseen(Machine on, String way) {
    CudaDriver unseen = on.driver.delegate();
    Runnable fill = () -> on.pinned.fill((byte) 5);
    switch (way) {
      case "graph" -> {
        long graph = unseen.graphs().graphCreate();
        var node = new GraphNodeParams.Fill(on.pinned.address(), 5, 1, BYTES);
        assertThat(unseen.graphs().graphAddNode(0, graph, new long[0], node)).isNotNull();
        long executable = unseen.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
        on.driver.graphs().graphLaunch(0, executable, on.stream);
      }
      case "host function" -> on.driver.streams().launchHostFunc(0, on.stream, fill);
      default -> {
        long handle = on.driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);
        on.driver.math().mathHandleSetStream(MathLibrary.CUBLAS, 0, handle, on.stream);
        unseen.transfers().memsetD8Async(0, on.pinned.address(), (byte) 5, BYTES, on.stream);
      }
    }
  }

  /** It was not the host that changed what a copy reads behind work of which nothing is known. */
  @ParameterizedTest
  @ValueSource(strings = {"graph", "host function", "library"})
  void workThatNobodySees_mayChangeWhatCopiesBehindItRead(String way) {
    try (Machine on = new Machine(1)) {
      CountDownLatch queued = new CountDownLatch(1);
      on.driver.delegate().streams().launchHostFunc(0, on.stream, () -> Latches.await(queued));
      changeUnseen(on, way);
      on.send(on.pinned);
      queued.countDown();
      on.synchronize();
      assertThat(on.pinned.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 5);
    }
    assertThat(reports).isEmpty();
  }

  /** It is queued by launches alone, of which there is none. */
  @Test
  void hostFunctionThatIsCaptured_changesNothing() {
    try (Machine on = new Machine(3)) {
      on.driver.captures().streamBeginCapture(0, on.stream, 2);
      on.driver.streams().launchHostFunc(0, on.stream, () -> {});
      long graph = on.driver.captures().streamEndCapture(0, on.stream);
      on.send(on.pinned);
      on.pinned.fill((byte) 2);
      on.synchronize();
      on.driver.graphs().graphDestroy(graph);
      assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
    }
  }

  /** Whoever writes the word may have written all that is read behind the wait before. */
  @Test
  void memoryThatIsReadBehindAWaitForAWord_isFilledUntilThen() {
    try (Machine on = new Machine(3)) {
      MemorySegment word = on.driver.memory().memHostAlloc(0, 4, 0).fill((byte) 0);
      on.driver.streams().streamWaitValue32(0, on.stream, word.address(), 1, 1);
      on.send(on.pinned);
      on.pinned.fill((byte) 2);
      word.set(ValueLayout.JAVA_INT, 0, 1);
      on.synchronize();
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatOnlyAnotherThreadMayRead_isNotLookedAt() throws InterruptedException {
    try (Machine on = new Machine(1);
        Arena arena = Arena.ofConfined()) {
      long pool = on.driver.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0));
      long block = on.driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, on.stream);
      MemorySegment view = on.driver.memory().hostView(0, block, BYTES, arena);
      AtomicBoolean queued = new AtomicBoolean();
      NewThread.run(() -> {
        on.driver.transfers().memcpyAsync(0, on.memory, block, BYTES, on.stream);
        queued.set(true);
      });
      assertThat(queued).isTrue();
      view.set(ValueLayout.JAVA_BYTE, 9, (byte) 3);
      on.synchronize();
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryWhoseFreeWasRefused_isLookedAtAsBefore() {
    Faults faults =
        Faults.at(SimulatedDriver.open(SimulatedOptions.DEFAULTS), 1).only("memFreeHost");
    try (SanitizerDriver above = SanitizerDriver.reporting(faults.driver(), reports::add)) {
      long memory = above.memory().memAlloc(0, BYTES);
      MemorySegment pinned = above.memory().memHostAlloc(0, BYTES, 0).fill((byte) 1);
      assertThatExceptionOfType(CudaException.class)
          .isThrownBy(() -> above.memory().memFreeHost(0, pinned.address()));
      above.transfers().memcpyHtoDAsync(0, memory, pinned, 0);
      pinned.fill((byte) 2);
      above.streams().streamSynchronize(0, 0);
      assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
      above.memory().memFree(0, memory);
      above.memory().memFreeHost(0, pinned.address());
    }
  }

  @Test
  void memoryThatTheDeviceWroteBefore_isTheHostsToLeaveAlone_onceWorkReadsIt() {
    try (Machine on = new Machine(5)) {
      on.driver.transfers().memsetD8Async(0, on.memory, (byte) 1, BYTES, on.stream);
      on.driver.transfers().memcpyDtoHAsync(0, on.pinned, on.memory, on.stream);
      on.synchronize();
      on.send(on.pinned);
      on.pinned.fill((byte) 2);
      on.synchronize();
      assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
    }
  }

  @Test
  void manyWritesOfPieces_areNotedBehindReadsThatAreDone() {
    try (Machine on = new Machine(5)) {
      on.pinned.fill((byte) 3);
      on.send(on.pinned);
      on.synchronize();
      for (int i = 0; i < BYTES / 8; i++) {
        on.driver.transfers().memcpyDtoHAsync(0, on.pinned.asSlice(8 * i, 4), on.memory, on.stream);
      }
      on.synchronize();
      assertThat(reports).isEmpty();
    }
  }
}
