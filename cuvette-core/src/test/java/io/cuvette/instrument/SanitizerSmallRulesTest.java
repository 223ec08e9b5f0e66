package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Latches;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.StreamHandle;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is no mistake although it looks like one, and what is one mistake and not two. */
class SanitizerSmallRulesTest extends SanitizerTestBase {
  private final long first = stream();
  private final long second = stream();

  private void fill(long address, long bytes, long stream) {
    driver.transfers().memsetD8Async(0, address, (byte) 1, bytes, stream);
  }

  @Test
  void addressThatNobodyKnows_mayBeOfAnotherAllocator() {
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.natives().callFree(2, 0, 0x1234_0000L, 0));
    assertSilent();
  }

  @Test
  void whatIsMissing_isNamed() {
    Misuse[] none = null;
    Consumer<SanitizerReport> nobody = null;
    Map<String, ThrowingCallable> calls =
        Map.of(
            "target", () -> SanitizerDriver.throwing(null),
            "ignored", () -> SanitizerDriver.throwing(driver, none),
            " target", () -> SanitizerDriver.reporting(null, reports::add),
            " ignored", () -> SanitizerDriver.reporting(driver, reports::add, none),
            "consumer", () -> SanitizerDriver.reporting(driver, nobody));
    calls.forEach((name, call) ->
        assertThatNullPointerException().isThrownBy(call).withMessage(name.strip()));
  }

  @Test
  void freeOfMemoryGivenInOrder_waitsForNoDevice() {
    long used = memory();
    long ordered = driver.ordered().memAllocAsync(0, 1024, second);
    driver.streams().streamSynchronize(0, second);
    write(used, first);
    driver.memory().memFree(0, ordered);
    assertSilent();
    driver.memory().memFree(0, used);
    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void memoryThatOthersMayWrite_isNotUnwritten_norMarkedSo() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 1024, 0);
    Object _ = driver.sharing().ipcGetMemHandle(0, pinned.address());
    read(pinned.address(), first);
    driver.streams().streamSynchronize(0, first);
    assertSilent();

    pinned.fill((byte) 7);
    driver
        .blockListener()
        .blockAllocated(new BlockListener.Block(1, pinned.address(), pinned.byteSize()));
    assertThat(pinned.toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
    assertSilent();
  }

  @Test
  void memoryThatEndsBeforeItIsComparedAgain_isNotCompared() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment registered = arena.allocate(1024);
      driver.memory().memHostRegister(0, registered, 0);
      driver.transfers().memcpyHtoDAsync(0, memory(), registered, first);
    }
    driver.streams().streamSynchronize(0, first);
    assertSilent();
  }

  @Test
  void memoryOfAFile_isNotCompared(@TempDir Path folder) throws IOException {
    Path path = Files.write(folder.resolve("data"), new byte[1024]);
    try (FileChannel file =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      MemorySegment mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, 1024, Arena.ofAuto());
      driver.memory().memHostRegister(0, mapped, 0);
      driver.transfers().memcpyHtoDAsync(0, memory(), mapped, first);
      mapped.set(ValueLayout.JAVA_BYTE, 5, (byte) 1);
      driver.streams().streamSynchronize(0, first);
    }
    assertSilent();
  }

  @Test
  void poolMayFreeWhatItsStreamsStillUse() {
    long chunk = memory();
    driver.blockAllocated(chunk, 512);
    fill(chunk, 512, first);
    driver.memory().memFree(0, chunk);
    assertSilent();
  }

  @Test
  void copyOfNoBytes_readsNothing() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 1024, 0);
    long unwritten = memory();
    driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, 0), pinned.address(), first);
    driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, 0), unwritten, first);
    driver.transfers().memcpyAsync(0, unwritten + 8, unwritten + 8, 0, first);
    assertSilent();
  }

  @Test
  void readThatIsWrongAnyway_isNotUnwrittenToo() {
    long unwritten = memory();
    driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, 1025), unwritten, first);
    assertOnly(Misuse.OUT_OF_BOUNDS);
    reports.clear();

    MemorySegment pinned = driver.memory().memHostAlloc(0, 1024, 0);
    long gone = stream();
    driver.streams().streamDestroy(0, gone);
    read(pinned.address(), gone);
    assertOnly(Misuse.DESTROYED_HANDLE);
  }

  @Test
  void copyToNowhere_isNoReadOfUnwrittenMemoryToo() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 1024, 0);
    driver.transfers().memcpyAsync(0, 0x5000, pinned.address(), 1024, first);
    assertOnly(Misuse.UNKNOWN_ADDRESS);
  }

  /** So many that it is looked which of them are done: none is. */
  @Test
  void firstOfManyReads_isKnownToTheLast() {
    long large = driver.memory().memAlloc(0, 1 << 14);
    fill(large, 1 << 14, first);
    driver.streams().streamSynchronize(0, first);
    for (int i = 0; i < 300; i++) {
      driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, 2), large + i * 8L, first);
    }
    assertSilent();
    fill(large, 2, second);
    assertOnly(Misuse.RACE);
  }

  @Test
  void blockOfAPoolOfAPool_comesBackOnce() {
    BlockListener listener = driver.blockListener();
    long chunk = memory();
    listener.blockAllocated(new BlockListener.Block(1, chunk, 512));
    BlockListener.Block inner = new BlockListener.Block(2, chunk, 64);
    listener.blockAllocated(inner);
    BlockListener.Block innermost = new BlockListener.Block(3, chunk, 16);
    listener.blockAllocated(innermost);
    listener.blockFreed(innermost);
    assertSilent();
    listener.blockFreed(innermost);
    assertOnly(Misuse.DOUBLE_FREE);
  }

  /** The stream of the thread is one as any other. */
  @Test
  void workOfTheThreadsOwnStream_isInOrder_andBesideThatOfOthers() {
    long memory = memory();
    write(memory, StreamHandle.PER_THREAD);
    write(memory, StreamHandle.PER_THREAD);
    assertSilent();
    write(memory, first);
    assertThat(assertOnly(Misuse.RACE).message()).contains("the per-thread stream");
    driver.memory().memFree(0, memory);
    assertThat(reports).extracting(SanitizerReport::misuse).endsWith(Misuse.FREE_WHILE_IN_USE);
  }

  /** The function has run, so what comes before it is done. */
  @Test
  void functionInABlockingStream_isBehindTheDefaultStream() {
    long block = memory();
    write(block, StreamHandle.LEGACY);
    driver.streams().launchHostFunc(0, first, () -> {});
    write(block, first);
    assertOnly(Misuse.RACE);
    reports.clear();

    driver.streams().streamSynchronize(0, first);
    driver.streams().launchHostFunc(0, blockingStream(), () -> {});
    write(block, first);
    driver.streams().streamSynchronize(0, first);
    driver.memory().memFree(0, block);
    assertSilent();
  }

  /** It is work of that stream as any other. */
  @Test
  void waitForAWordInABlockingStream_isBehindTheDefaultStream() {
    long block = memory();
    long blocking = blockingStream();
    MemorySegment word = driver.memory().memHostAlloc(0, 4, 0);
    write(block, StreamHandle.LEGACY);
    driver.streams().streamWaitValue32(0, blocking, word.address(), 1, 1);
    driver.streams().streamSynchronize(0, blocking);
    write(block, first);
    assertSilent();
  }

  @Test
  void captureOfAnotherThreadsOwnStream_isNoneOfThisThreads() throws InterruptedException {
    long block = memory();
    long event = event();
    CountDownLatch began = new CountDownLatch(1);
    CountDownLatch used = new CountDownLatch(1);
    Thread other =
        Thread.ofPlatform()
            .start(() -> {
              driver.captures().streamBeginCapture(0, StreamHandle.PER_THREAD, 1);
              write(block, StreamHandle.PER_THREAD);
              began.countDown();
              Latches.await(used);
              long graph = driver.captures().streamEndCapture(0, StreamHandle.PER_THREAD);
              driver.graphs().graphDestroy(graph);
            });
    Latches.await(began);
    write(block, StreamHandle.PER_THREAD);
    driver.events().eventRecord(0, event, StreamHandle.PER_THREAD);
    driver.streams().streamWaitEvent(0, first, event);
    write(block, first);
    used.countDown();
    other.join();
    assertSilent();
    write(block, StreamHandle.PER_THREAD);
    assertOnly(Misuse.RACE);
  }

  /** As on an H200, also where what the event stands for is done. */
  @Test
  void waitInTheDefaultStream_isBetweenTheWorkOfBlockingStreams() {
    long block = memory();
    long event = event();
    driver.events().eventRecord(0, event, first);
    driver.streams().streamSynchronize(0, first);
    write(block, blockingStream());
    driver.streams().streamWaitEvent(0, StreamHandle.NULL, event);
    write(block, blockingStream());
    assertSilent();
    driver.streams().streamWaitEvent(0, second, event);
    write(block, second);
    assertOnly(Misuse.RACE);
  }

  /** Who waits for the function would wait for ever. */
  @Test
  void functionRuns_alsoIfAMistakeComesOutBeforeIt() {
    AtomicInteger runs = new AtomicInteger();
    SanitizerDriver throwing = SanitizerDriver.throwing(tiny.driver, Misuse.UNKNOWN_HANDLE);
    MemorySegment pinned = throwing.memory().memHostAlloc(0, 1024, 0).fill((byte) 1);
    long block = throwing.memory().memAlloc(0, 1024);
    throwing.transfers().memcpyHtoDAsync(0, block, pinned, first);
    pinned.fill((byte) 2);
    assertThatExceptionOfType(SanitizerException.class)
        .isThrownBy(() -> throwing.streams().launchHostFunc(0, first, runs::incrementAndGet))
        .withMessageContaining("HOST_RACE");
    assertThat(runs).hasValue(1);
  }

  /** A function must not throw: what is found as it begins is thrown by a call of the program. */
  @Test
  void mistakeThatAFunctionShows_isThrownByTheNextCall_andLeavesTheDeviceAsItIs() {
    try (SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      SanitizerDriver driver = SanitizerDriver.throwing(below);
      long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
      long block = driver.memory().memAlloc(0, 64);
      MemorySegment pinned = driver.memory().memHostAlloc(0, 64, 0).fill((byte) 1);
      driver.transfers().memcpyAsync(0, block, pinned.address(), 64, stream);
      pinned.fill((byte) 2);
      driver.streams().launchHostFunc(0, stream, () -> {});
      below.streams().streamSynchronize(0, stream);
      assertThatThrownBy(() -> driver.streams().streamSynchronize(0, stream))
          .isInstanceOf(SanitizerException.class)
          .hasMessageContaining("HOST_RACE");
      driver.streams().streamSynchronize(0, stream);
      driver.memory().memFree(0, block);
      driver.memory().memFreeHost(0, pinned.address());
      driver.streams().streamDestroy(0, stream);
    }
  }
}
