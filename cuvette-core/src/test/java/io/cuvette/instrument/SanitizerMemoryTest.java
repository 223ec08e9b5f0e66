package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemoryCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class SanitizerMemoryTest extends SanitizerTestBase {
  private static void refused(ThrowingCallable call) {
    assertThatExceptionOfType(CudaException.class).as("the driver").isThrownBy(call);
  }

  @Test
  void orderlyProgram_isSilent() {
    long stream = stream();
    long device = memory();
    MemorySegment pinned = driver.memory().memHostAlloc(0, 1024, 1);
    MemorySegment managed = driver.memory().memAllocManaged(0, 1024, 1);
    driver.memory().memAdvise(0, managed.address(), 1024, 1, 1, 0);
    driver.memory().memPrefetchAsync(0, managed.address(), 1024, 1, 0, stream);
    driver.transfers().memcpyHtoDAsync(0, device, pinned, stream);
    driver.transfers().memcpyAsync(0, device, managed.address(), 1024, stream);
    driver.transfers().memcpyPeerAsync(0, managed.address(), 0, device, 0, 1024, stream);
    driver.transfers().memsetD16Async(0, device, (short) 1, 512, stream);
    driver.transfers().memsetD32Async(0, device, 1, 256, stream);
    driver.transfers().memcpyDtoHAsync(0, pinned, device, stream);
    driver.streams().streamSynchronize(0, stream);
    driver.memory().hostView(0, pinned.address(), 1024, Arena.global());
    driver.memory().memFree(0, device);
    driver.memory().memFree(0, managed.address());
    driver.memory().memFreeHost(0, pinned.address());
    driver.memory().memFree(0, 0);
    driver.streams().streamDestroy(0, stream);
    driver.close();

    assertSilent();
    assertThat(tiny.closed).isTrue();
  }

  @Test
  void useAfterFree_namesTheFreeAndTheAllocation() {
    long address = memory();
    driver.memory().memFree(0, address);

    driver.transfers().memsetD8Async(0, address + 8, (byte) 1, 16, 0);

    SanitizerReport report = assertOnly(Misuse.USE_AFTER_FREE);
    assertThat(report.message())
        .contains("memsetD8Async(", "write of 16 bytes", "block 0x", "of 1024 bytes");
    assertThat(report.sites())
        .extracting(Site::call)
        .satisfiesExactly(
            use -> assertThat(use).startsWith("memsetD8Async("),
            free -> assertThat(free).startsWith("memFree("),
            allocation -> assertThat(allocation).startsWith("memAlloc("));
    assertThat(report.describe()).contains("useAfterFree_namesTheFreeAndTheAllocation");
  }

  @Test
  void addressGivenOutAgain_isLive() {
    MemorySegment fixed = Arena.ofAuto().allocate(64);
    for (int i = 0; i < 3; i++) {
      long address = memory();
      driver.memory().memFree(0, address);
    }
    SanitizerDriver again =
        SanitizerDriver.reporting(
            new ForwardingDriver(tiny.driver) {

              private final MemoryCalls memoryCalls =
                  new ForwardingMemory(delegate().memory()) {
                    @Override
                    public long memAlloc(int device, long bytes) {
                      return fixed.address();
                    }

                    @Override
                    public void memFree(int device, long address) {}
                  };

              @Override
              public MemoryCalls memory() {
                return memoryCalls;
              }
            },
            reports::add);
    again.memory().memFree(0, again.memory().memAlloc(0, 64));
    again.transfers().memsetD8Async(0, again.memory().memAlloc(0, 64), (byte) 1, 64, 0);

    assertSilent();
  }

  @Test
  void doubleFree_hasBothStacks() {
    long address = memory();
    driver.memory().memFree(0, address);

    refused(() -> driver.memory().memFree(0, address));

    SanitizerReport report = assertOnly(Misuse.DOUBLE_FREE);
    assertThat(report.sites()).hasSize(3);
    assertThat(report.sites().get(1).call()).startsWith("memFree(");
    assertThat(report.sites().get(2).call()).startsWith("memAlloc(");
  }

  @Test
  void freeInsideABlock_isInvalid() {
    long address = memory();

    refused(() -> driver.memory().memFree(0, address + 256));

    assertThat(assertOnly(Misuse.INVALID_FREE).message()).contains("256 bytes into block");
  }

  @Test
  void freeOfAnUnknownAddress_isInvalid() {
    refused(() -> driver.memory().memFree(0, 0x1234));

    assertThat(assertOnly(Misuse.INVALID_FREE).message()).contains("no block begins at 0x1234");
  }

  @Test
  void freeOfNothing_isNone() {
    driver.memory().memFree(0, 0);
    driver.ordered().memFreeAsync(0, 0, 0);
    driver.memory().memFreeHost(0, 0);
    assertSilent();
  }

  @Test
  void freeWithTheWrongFunction_isInvalid() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 64, 1);

    driver.memory().memFree(0, pinned.address());

    assertThat(assertOnly(Misuse.INVALID_FREE).message()).contains("is freed by memFreeHost");
  }

  @Test
  void useBeyondTheEnd_isOutOfBounds() {
    long address = memory();

    driver.transfers().memsetD32Async(0, address + 1000, 1, 7, 0);

    assertThat(assertOnly(Misuse.OUT_OF_BOUNDS).message())
        .contains("write of 28 bytes")
        .contains("begins 1000 bytes into block")
        .contains("of 1024 bytes");
  }

  @Test
  void fillOfShorts_isOfTwoBytesEach() {
    long address = memory();

    driver.transfers().memsetD16Async(0, address + 1000, (short) 1, 13, 0);

    assertThat(assertOnly(Misuse.OUT_OF_BOUNDS).message()).contains("write of 26 bytes");
  }

  @Test
  void copyBetweenDevices_readsItsSource() {
    long address = memory();

    driver.transfers().memcpyPeerAsync(0, address, 0, address + 4096, 0, 16, 0);

    assertThat(assertOnly(Misuse.UNKNOWN_ADDRESS).message()).contains("read of 16 bytes");
  }

  @Test
  void useOfTheLastByte_isInBounds_andOfNoBytes_anywhere() {
    long address = memory();
    driver.transfers().memsetD8Async(0, address + 1023, (byte) 1, 1, 0);
    driver.transfers().memsetD8Async(0, address + 1024, (byte) 1, 0, 0);

    assertSilent();
  }

  @Test
  void useOfAnUnknownAddress_namesTheNearestBlock() {
    long address = memory();

    driver.transfers().memcpyAsync(0, address, address + 4096, 16, 0);

    assertThat(assertOnly(Misuse.UNKNOWN_ADDRESS).message())
        .contains("read of 16 bytes")
        .contains("the nearest below is block");
  }

  @Test
  void hostMemoryOfTheProgram_needsNoBlock_butDeadMemoryDoes() {
    long address = memory();
    MemorySegment dead;
    try (Arena arena = Arena.ofConfined()) {
      driver.transfers().memcpyHtoDAsync(0, address, arena.allocate(16), 0);
      dead = arena.allocate(16);
    }
    assertSilent();

    driver.transfers().memcpyHtoDAsync(0, address, dead, 0);

    assertOnly(Misuse.UNKNOWN_ADDRESS);
  }

  @Test
  void viewOrAdviceOfFreedMemory_isUseAfterFree() {
    long address = driver.memory().memAllocManaged(0, 64, 1).address();
    driver.memory().memFree(0, address);

    driver.memory().hostView(0, address, 64, Arena.global());
    driver.memory().memAdvise(0, address, 64, 1, 1, 0);
    driver.memory().memRangeGetAttribute(0, 1, address, 64);

    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.USE_AFTER_FREE, Misuse.USE_AFTER_FREE, Misuse.USE_AFTER_FREE);
  }

  /** Whether it changed while work read it is not known to another thread. */
  @Test
  void hostMemoryOfOneThread_isLookedAtByThatAlone() throws Exception {
    try (Arena confined = Arena.ofConfined()) {
      MemorySegment own = confined.allocate(1024);
      driver.memory().memHostRegister(0, own, 0);
      driver.transfers().memcpyHtoDAsync(0, memory(), own, 0);
      own.fill((byte) 1);
      NewThread.run(() -> driver.streams().streamSynchronize(0, 0));
      assertSilent();
    }
  }

  @Test
  void leaks_areReportedAtCloseWithTheirAllocation_once() {
    memory();
    stream();

    driver.close();
    driver.close();

    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.LEAK, Misuse.LEAK);
    assertThat(reports.getFirst().message()).contains("of 1024 bytes is never freed");
    assertThat(reports.getFirst().describe())
        .contains("leaks_areReportedAtCloseWithTheirAllocation_once");
    assertThat(driver.leaks()).hasSize(2);
    assertThat(tiny.closed).isTrue();
  }

  @Test
  void waitThatFails_ordersNothing() {
    Faults faults = Faults.at(tiny.driver, 1).only("eventSynchronize");
    SanitizerDriver above = SanitizerDriver.reporting(faults.driver(), reports::add);
    long address = above.memory().memAlloc(0, 64);
    long first = above.streams().streamCreateWithPriority(0, 1, 0);
    long second = above.streams().streamCreateWithPriority(0, 1, 0);
    long event = above.events().eventCreate(0, 2);
    above.transfers().memsetD8Async(0, address, (byte) 1, 64, first);
    above.events().eventRecord(0, event, first);
    refused(() -> above.events().eventSynchronize(0, event));
    assertSilent();
    above.transfers().memsetD8Async(0, address, (byte) 2, 64, second);
    assertOnly(Misuse.RACE);
  }

  @Test
  void refusedFree_leavesTheBlockLive() {
    Faults faults = Faults.at(tiny.driver, 3);
    SanitizerDriver above = SanitizerDriver.reporting(faults.driver(), reports::add);
    long address = above.memory().memAlloc(0, 64);
    long stream = above.streams().streamCreateWithPriority(0, 1, 0);

    refused(() -> above.memory().memFree(0, address));
    above.transfers().memsetD8Async(0, address, (byte) 1, 64, stream);
    above.streams().streamSynchronize(0, stream);
    above.memory().memFree(0, address);
    above.streams().streamDestroy(0, stream);

    assertSilent();
    assertThat(above.leaks()).isEmpty();
  }

  @Test
  @Timeout(60)
  void whoeverGetsReports_mayWaitForAThreadThatCallsTheDriver() {
    AtomicReference<SanitizerDriver> reporting = new AtomicReference<>();
    List<Long> made = new CopyOnWriteArrayList<>();
    reporting.set(
        SanitizerDriver.reporting(
            tiny.driver, _ -> elsewhere(() -> made.add(reporting.get().memory().memAlloc(0, 8)))));
    MemoryCalls memory = reporting.get().memory();
    long address = memory.memAlloc(0, 64);
    memory.memFree(0, address);
    reporting.get().transfers().memsetD8Async(0, address, (byte) 1, 64, 0);
    assertThat(made).hasSize(1);
  }

  private static void elsewhere(Runnable step) {
    try {
      NewThread.run(step);
    } catch (InterruptedException e) {
      throw new IllegalStateException("out of time", e);
    }
  }

  @Test
  void throwingSanitizer_keepsTheMistakeFromTheDriver() {
    SanitizerDriver strict = SanitizerDriver.throwing(tiny.driver);
    MemorySegment pinned = strict.memory().memHostAlloc(0, 64, 1);

    assertThatThrownBy(() -> strict.memory().memFree(0, pinned.address()))
        .isInstanceOfSatisfying(
            SanitizerException.class,
            e -> {
              assertThat(e.report().misuse()).isEqualTo(Misuse.INVALID_FREE);
              assertThat(e.getSuppressed()).hasSize(2);
            });
    assertThat(tiny.live()).hasSize(1);
    strict.memory().memFreeHost(0, pinned.address());
    assertThat(tiny.live()).isEmpty();
  }

  @Test
  void throwingSanitizer_closesTheDriverDespiteLeaks() {
    SanitizerDriver strict = SanitizerDriver.throwing(tiny.driver);
    strict.memory().memAlloc(0, 64);
    strict.events().eventCreate(0, 0);

    assertThatThrownBy(strict::close)
        .isInstanceOf(SanitizerException.class)
        .satisfies(e -> assertThat(e.getSuppressed()).as("its site, the other leak").hasSize(2));
    assertThat(tiny.closed).isTrue();
  }

  @Test
  void ignoredMisuse_isNotReported() {
    SanitizerDriver lenient =
        SanitizerDriver.throwing(tiny.driver, Misuse.UNKNOWN_ADDRESS, Misuse.LEAK);
    lenient.transfers().memsetD8Async(0, 0x1000, (byte) 1, 8, 0);
    lenient.memory().memAlloc(0, 8);
    lenient.close();

    assertThat(lenient.name()).isEqualTo("sanitizer(tiny)");
  }

  @Test
  void nativeAllocations_areWatchedTheSameWay() {
    long address = driver.natives().callMalloc(1, 0, 64, 0);
    driver.transfers().memsetD8Async(0, address, (byte) 1, 64, 0);
    driver.devices().ctxSynchronize(0);
    driver.natives().callFree(2, 0, address, 0);
    assertSilent();

    refused(() -> driver.natives().callFree(2, 0, address, 0));
    assertOnly(Misuse.DOUBLE_FREE);
  }

  @Test
  void memoryOfTheDevice_isNotFreedAsThatOfTheHost() {
    long plain = memory();
    driver.memory().memFreeHost(0, plain);
    assertThat(assertOnly(Misuse.INVALID_FREE).message()).contains("is freed by memFree");
    reports.clear();
    long ordered = driver.ordered().memAllocAsync(0, 64, 0);
    driver.devices().ctxSynchronize(0);
    driver.memory().memFreeHost(0, ordered);
    assertOnly(Misuse.INVALID_FREE);
    reports.clear();
    refused(() -> driver.memory().memFreeHost(0, ordered));
    assertOnly(Misuse.DOUBLE_FREE);
  }

  @Test
  void nativeMemoryInUse_isNotFreed() {
    long address = driver.natives().callMalloc(1, 0, 64, 0);
    driver.transfers().memsetD8Async(0, address, (byte) 1, 64, 0);
    driver.natives().callFree(2, 0, address, 0);
    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void readBeyondPinnedMemory_isOutOfBounds_andNoChecksum() {
    long address = memory();
    long pinned = driver.memory().memHostAlloc(0, 1024, 1).address();
    driver.transfers().memcpyAsync(0, address, pinned + 1000, 64, 0);
    assertOnly(Misuse.OUT_OF_BOUNDS);
  }

  /** An allocator without memory gives 0, and none is there. */
  @Test
  void memoryWithoutBytes_orWithoutAnAddress_isNone() {
    assertThat(driver.memory().memAlloc(0, 0)).isNotZero();
    assertThat(driver.leaks()).isEmpty();
    CudaDriver empty =
        DriverProxy.of((method, arguments) ->
            method.getName().equals("callMalloc")
                ? Long.valueOf(0)
                : DriverProxy.forward(tiny.driver, method, arguments));
    SanitizerDriver above = SanitizerDriver.reporting(empty, reports::add);
    assertThat(above.natives().callMalloc(1, 0, 64, 0)).isZero();
    assertThat(above.leaks()).isEmpty();
    assertSilent();
  }

  /** Each copy of a batch has its own bytes. */
  @Test
  void copyOfABatch_isCheckedAsIfItWereAlone() {
    long target = memory();
    long source = memory();
    write(source, 0);
    copy(new long[] {target, target + 8}, new long[] {source, source + 8}, 8, 1016);
    assertSilent();
    copy(new long[] {target, target + 8}, new long[] {source, source}, 8, 1017);
    assertThat(assertOnly(Misuse.OUT_OF_BOUNDS).message()).contains("write of 1017 bytes");
    reports.clear();
    copy(new long[] {target, target}, new long[] {source, source + 8}, 8, 1017);
    assertThat(assertOnly(Misuse.OUT_OF_BOUNDS).message()).contains("read of 1017 bytes");
  }

  private void copy(long[] targets, long[] sources, long... bytes) {
    driver.transfers().memcpyBatchAsync(0, targets, sources, bytes, 0);
  }
}
