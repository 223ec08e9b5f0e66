package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.machine.SimCosts;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.LongSupplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Rules of memory of each kind, and of the calls that take, place and give it back. */
class MemoryRulesTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final int L2_FETCH = 5;

  @Test
  void managedMemory_isForAllOrForTheHost() {
    for (int flags : new int[] {1, 2}) {
      long address = driver.memory().memAllocManaged(0, 64, flags).address();
      driver.memory().memFree(0, address);
    }
    for (int flags : new int[] {Integer.MIN_VALUE, -1, 0, 3, 4}) {
      assertFails(INVALID, "flags: " + flags, () -> driver.memory().memAllocManaged(0, 64, flags));
    }
    for (long bytes : new long[] {0, -1, Long.MIN_VALUE}) {
      String text = "bytes: " + bytes;
      assertFails(INVALID, text, () -> driver.memory().memAllocManaged(0, bytes, 1));
      assertFails(INVALID, text, () -> driver.memory().memHostAlloc(0, bytes, 0));
      assertFails(INVALID, text, () -> driver.memory().memAlloc(0, bytes));
    }
    assertThat(driver.liveAllocations()).isZero();
  }

  @Test
  void poolsOfManagedMemoryAlone_needWhatADriverOrADeviceLacks() {
    SimulatedOptions options = SimulatedOptions.DEFAULTS;
    try (SimulatedDriver old = SimulatedDriver.open(options.withDriverVersion(12_080));
        SimulatedDriver apart = SimulatedDriver.open(options.withConcurrentManaged(false))) {
      for (SimulatedDriver each : List.of(old, apart)) {
        assertFails(
            CudaStatus.NOT_SUPPORTED,
            "pools of managed memory need",
            () -> each.pools().memPoolCreate(new PoolProperties(2, 0, 0, 0, 0)));
        for (int location : new int[] {1, 2, 3}) {
          PoolProperties pinned = new PoolProperties(1, 0, location, 0, 0);
          each.pools().memPoolDestroy(each.pools().memPoolCreate(pinned));
        }
        assertThat(each.livePools()).isZero();
      }
    }
  }

  @Test
  void driverWithoutPools_refusesToChangeThem() {
    try (SimulatedDriver old =
        SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDriverVersion(11_010))) {
      for (ThrowingCallable call :
          new ThrowingCallable[] {
            () -> old.pools().memPoolDestroy(NO_HANDLE),
            () -> old.pools().deviceSetMemPool(0, NO_HANDLE),
            () -> old.pools().memPoolGetAttribute(NO_HANDLE, 4),
            () -> old.pools().memPoolSetAttribute(NO_HANDLE, 4, 1),
            () -> old.pools().memPoolGetAccess(NO_HANDLE, 1, 0),
            () -> old.pools().memPoolSetAccess(NO_HANDLE, 1, new int[] {0}, 3)
          }) {
        assertFails(CudaStatus.CALL_REQUIRES_NEWER_DRIVER, "CUDA 11.1 (expected: >= 11.2)", call);
      }
    }
  }

  @Test
  void copyWithinOneMemory_isOfBytesThatAreApart() {
    long memory = driver.memory().memAlloc(0, 64);
    long stream = stream(0);
    long[] bytes = {8, 8};
    for (long apart : new long[] {1, -1, 7}) {
      assertFails(
          INVALID,
          "",
          () ->
              driver
                  .transfers()
                  .memcpyBatchAsync(
                      0,
                      new long[] {memory, memory + 32},
                      new long[] {memory + 48, memory + 32 + apart},
                      bytes,
                      stream));
    }
    for (long apart : new long[] {8, -8}) {
      driver
          .transfers()
          .memcpyBatchAsync(
              0,
              new long[] {memory, memory + 32},
              new long[] {memory + 48, memory + 32 + apart},
              bytes,
              stream);
    }
    driver.streams().streamSynchronize(0, stream);
  }

  @Test
  void copyBetweenDevices_namesTheOwnersOfItsMemory() {
    long first = driver.memory().memAlloc(0, 8);
    long second = driver.memory().memAlloc(1, 8);
    driver.transfers().memcpyPeerAsync(0, first, 0, second, 1, 8, 0);
    driver.transfers().memcpyPeerAsync(0, second, 1, first, 0, 8, 0);
    var calls = driver.transfers();
    String ofFirst = "is memory of device 0 (expected: of device 1)";
    String ofSecond = "is memory of device 1 (expected: of device 0)";
    assertFails(
        INVALID,
        "target: 0x%x %s".formatted(first, ofFirst),
        () -> calls.memcpyPeerAsync(0, first, 1, second, 1, 8, 0));
    assertFails(
        INVALID,
        "source: 0x%x %s".formatted(first, ofFirst),
        () -> calls.memcpyPeerAsync(0, second, 1, first, 1, 8, 0));
    assertFails(
        INVALID,
        "target: 0x%x %s".formatted(second, ofSecond),
        () -> calls.memcpyPeerAsync(0, second, 0, first, 0, 8, 0));
    assertFails(
        INVALID,
        "source: 0x%x %s".formatted(second, ofSecond),
        () -> calls.memcpyPeerAsync(0, first, 0, second, 0, 8, 0));
    driver.devices().ctxSynchronize(0);
  }

  @Test
  void limits_haveARange() {
    for (long value : new long[] {0, 64, 128}) {
      driver.devices().ctxSetLimit(0, L2_FETCH, value);
      assertThat(driver.devices().ctxGetLimit(0, L2_FETCH)).isEqualTo(value);
    }
    assertFails(
        INVALID,
        "value: 129 (expected: 0 to 128)",
        () -> driver.devices().ctxSetLimit(0, L2_FETCH, 129));
    for (int limit : new int[] {0, 1, 2, 4, L2_FETCH, 6}) {
      driver.devices().ctxSetLimit(0, limit, 0);
      assertFails(
          INVALID, "value: -1 (expected: ", () -> driver.devices().ctxSetLimit(0, limit, -1));
      assertThat(driver.devices().ctxGetLimit(0, limit)).isZero();
    }
  }

  private long spent(Runnable call) {
    LongSupplier now = () -> driver.simulatedNanos(0);
    long before = now.getAsLong();
    call.run();
    return now.getAsLong() - before;
  }

  @Test
  void callsForMemoryWithoutAddress_takeTheirTimeOfTheHost() {
    long page = 2 * MIB;
    AllocationProperties first = AllocationProperties.ofDevice(0, MemHandleType.NONE);
    long[] range = new long[1];
    long[] handle = new long[1];
    int[] ids = {0};
    var calls = driver.virtual();
    assertThat(spent(() -> range[0] = calls.memAddressReserve(2 * page, 0, 0)))
        .isBetween(SimCosts.ADDRESS_RESERVE, SimCosts.ADDRESS_RESERVE + 100);
    assertThat(spent(() -> handle[0] = calls.memCreate(page, first)))
        .isBetween(SimCosts.create(page), SimCosts.create(page) + 100);
    assertThat(spent(() -> calls.memMap(range[0], page, 0, handle[0])))
        .isBetween(SimCosts.MAP, SimCosts.MAP + 100);
    assertThat(spent(() -> calls.memMap(range[0] + page, page, 0, handle[0])))
        .isBetween(SimCosts.MAP, SimCosts.MAP + 100);
    int device = MemLocationType.DEVICE;
    assertThat(spent(() -> calls.memSetAccess(range[0], 2 * page, device, ids, 3)))
        .isBetween(2 * SimCosts.SET_ACCESS, 2 * SimCosts.SET_ACCESS + 100);
    assertThat(spent(() -> calls.memRelease(handle[0]))).isLessThan(100);
    assertThat(spent(() -> calls.memUnmap(range[0], 2 * page)))
        .isBetween(
            2 * SimCosts.UNMAP + SimCosts.release(page),
            2 * SimCosts.UNMAP + SimCosts.release(page) + 100);
  }

  @Test
  void fileOfHostMemory_isAsLongAsWhatIsInIt() throws IOException {
    assertThat(driver.machine.hostMemory.fileBytes()).isZero();
    MemorySegment first = driver.memory().memHostAlloc(0, 10 * KIB, 0);
    MemorySegment second = driver.memory().memAllocManaged(0, 10 * KIB, 1);
    assertThat(driver.machine.hostMemory.fileBytes()).isBetween(20 * KIB, 40 * KIB);
    driver.memory().memFree(0, second.address());
    driver.memory().memFreeHost(0, first.address());
    assertThat(driver.machine.hostMemory.fileBytes()).isZero();
  }

  /** A free waits for the device; meanwhile another one may have been faster. */
  @Test
  @Timeout(60)
  void memoryThatTwoThreadsFree_isFreedByOneOfThem() throws InterruptedException {
    long device = driver.memory().memAlloc(0, 64);
    long pinned = driver.memory().memHostAlloc(0, 64, 0).address();
    long managed = driver.memory().memAllocManaged(0, 64, 1).address();
    long pooled = driver.ordered().memAllocAsync(0, 64, 0);
    driver.streams().streamSynchronize(0, 0);
    for (Runnable free :
        List.<Runnable>of(
            () -> driver.memory().memFree(0, device),
            () -> driver.memory().memFreeHost(0, pinned),
            () -> driver.memory().memFree(0, managed),
            () -> driver.memory().memFree(0, pooled))) {
      List<CudaStatus> results = Collections.synchronizedList(new ArrayList<>());
      CountDownLatch goOn = hold(0, 0);
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        threads.add(Thread.ofPlatform().start(() -> results.add(status(free))));
      }
      for (Thread each : threads) {
        while (each.getState() == Thread.State.RUNNABLE || each.getState() == Thread.State.NEW) {
          Thread.onSpinWait();
        }
      }
      goOn.countDown();
      for (Thread each : threads) {
        each.join();
      }
      assertThat(results).containsExactlyInAnyOrder(CudaStatus.SUCCESS, INVALID);
    }
    assertThat(driver.liveAllocations()).isZero();
    assertThat(driver.liveHostBytes()).isZero();
    assertThat(driver.liveBytes(0)).isZero();
  }

  private static CudaStatus status(Runnable call) {
    try {
      call.run();
      return CudaStatus.SUCCESS;
    } catch (CudaException e) {
      return e.status();
    }
  }
}
