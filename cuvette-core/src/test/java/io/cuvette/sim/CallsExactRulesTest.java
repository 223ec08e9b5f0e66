package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.internal.machine.SimCosts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiPredicate;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Answers of single calls: about the right device, stream and memory, and in the right words. */
@Timeout(60)
class CallsExactRulesTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final int PART = 18;
  private static final int PART_BYTES = 19;
  private static final int CONTEXT = 1;

  private static SimulatedDriver open(String settings) {
    return SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB," + settings));
  }

  @Test
  void streamOfADeviceThatFailed_isRefused_whicheverIsCurrent() {
    SimulatedKernel failing =
        SimulatedKernel.of(
            "failsBesideOthers",
            _ -> {
              throw new IllegalStateException("it fails");
            });
    long ofFailed = stream(1);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(failing)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(failing)));
      driver
          .kernels()
          .launchKernel(
              1,
              0,
              driver.kernels().libraryGetKernel(library, failing.name()),
              new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false),
              new LaunchParameters(MemorySegment.NULL, List.of()));
    }
    CudaStatus failed = CudaStatus.LAUNCH_FAILED;
    assertFails(failed, "it fails", () -> driver.devices().ctxSynchronize(1));
    List<ThrowingCallable> calls =
        List.of(
            () -> driver.streams().streamQuery(0, ofFailed),
            () -> driver.streams().streamGetPriority(0, ofFailed),
            () -> driver.streams().streamSynchronize(0, ofFailed));
    calls.forEach(call -> assertFails(failed, "it fails", call));
    assertThat(driver.streams().streamQuery(0, 0)).isTrue();
  }

  @Test
  void legacyStreamThatWaitsForACapturedEvent_spoilsTheCaptureThatItWouldWaitFor() {
    long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);
    long event = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, blocking, 2);
    driver.events().eventRecord(0, event, blocking);
    assertFails(
        CudaStatus.STREAM_CAPTURE_IMPLICIT,
        "legacy",
        () -> driver.streams().streamWaitEvent(0, 0, event));
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "",
        () -> driver.captures().streamEndCapture(0, blocking));
  }

  @Test
  void questionWhetherWorkIsDone_findsThatTheHostWroteTooEarly() {
    List<BiPredicate<SimulatedDriver, Long>> questions =
        List.of(
            (own, _) -> own.streams().streamQuery(0, 0),
            (own, event) -> own.events().eventQuery(0, event));
    for (BiPredicate<SimulatedDriver, Long> question : questions) {
      try (SimulatedDriver own = open("concurrentManaged=false,pace=eager")) {
        MemorySegment managed = own.memory().memAllocManaged(0, 64, 1);
        long event = own.events().eventCreate(0, 0);
        own.transfers().memsetD8Async(0, managed.address(), (byte) 5, 64, 0);
        own.events().eventRecord(0, event, 0);
        managed.set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
        assertFails(
            CudaStatus.ILLEGAL_ADDRESS,
            "the host wrote managed memory",
            () -> question.test(own, event));
      }
    }
  }

  @Test
  void viewWhoseArenaIsClosed_isNoMemoryOfTheDriver() {
    MemorySegment pinned = driver.memory().memHostAlloc(0, 64, 0);
    long address;
    try (Arena arena = Arena.ofConfined()) {
      address = driver.memory().hostView(0, pinned.address(), 64, arena).address();
      assertThat(driver.memory().pointerGetAttribute(0, 2, address)).isEqualTo(1);
    }
    assertFails(INVALID, "live memory", () -> driver.memory().pointerGetAttribute(0, 2, address));
  }

  @Test
  void refusals_sayWhatWasWanted() {
    long memory = driver.memory().memAlloc(0, 64);
    try (Arena arena = Arena.ofConfined()) {
      assertFails(
          INVALID,
          "hostView(address=0x%x, bytes=8)".formatted(memory),
          () -> driver.memory().hostView(0, memory, 8, arena));
    }
    long range = driver.virtual().memAddressReserve(4 * MIB, 0, 0);
    assertFails(
        INVALID,
        "exactly one reserved range)",
        () -> driver.virtual().memAddressFree(range + 2 * MIB, 2 * MIB));
    assertFails(
        INVALID,
        "exactly one reserved range, which has %d)".formatted(4 * MIB),
        () -> driver.virtual().memAddressFree(range, 2 * MIB));
  }

  @Test
  void memoryOfOnePiece_isItsOwnPart() {
    var memory = driver.memory();
    for (long address :
        new long[] {memory.memAlloc(0, 100), memory.memHostAlloc(0, 100, 0).address()}) {
      List<Long> parts =
          List.of(
              memory.pointerGetAttribute(0, PART, address + 7),
              memory.pointerGetAttribute(0, PART_BYTES, address + 7));
      assertThat(parts).containsExactlyInAnyOrder(address, 100L);
    }
  }

  @Test
  void devices_haveContextsOfTheirOwn() {
    try (SimulatedDriver own = open("devices=16")) {
      long[] contexts = new long[16];
      for (int device = 0; device < contexts.length; device++) {
        long address = own.memory().memAlloc(device, 8);
        contexts[device] = own.memory().pointerGetAttribute(device, CONTEXT, address);
      }
      assertThat(contexts).doesNotHaveDuplicates();
    }
  }

  @Test
  void managedMemoryOfSeveralAllocations_makesRoomTogether() {
    for (int i = 0; i < 3; i++) {
      long managed = driver.memory().memAllocManaged(0, MIB, 1).address();
      driver.memory().memPrefetchAsync(0, managed, MIB, MemLocationType.DEVICE, 0, 0);
    }
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(58 * MIB);
    driver.memory().memFree(0, driver.memory().memAlloc(0, 64 * MIB));
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(64 * MIB);
  }

  @Test
  void freeOfMemory_takesAsLongAsTheWorkBefore() {
    long bytes = 32 * MIB;
    for (String pace : new String[] {"lazy", "eager"}) {
      try (SimulatedDriver own = open("pace=" + pace)) {
        long used = own.memory().memAlloc(0, bytes);
        long other = own.memory().memAlloc(0, 8);
        long before = own.simulatedNanos(0);
        own.transfers().memsetD8Async(0, used, (byte) 1, bytes, 0);
        own.memory().memFree(0, other);
        assertThat(own.simulatedNanos(0) - before)
            .as(pace)
            .isGreaterThanOrEqualTo(SimCosts.fill(bytes) + SimCosts.alloc(8));
      }
    }
  }

  @Test
  void copyOfMuchPageableMemory_costsItsCall() {
    try (SimulatedDriver own = open("pace=lazy")) {
      long memory = own.memory().memAlloc(0, MIB);
      MemorySegment source = Arena.ofAuto().allocate(MIB);
      long before = own.simulatedNanos(0);
      own.transfers().memcpyHtoDAsync(0, memory, source, 0);
      assertThat(own.simulatedNanos(0) - before).isEqualTo(SimCosts.CALL + SimCosts.SUBMIT);
    }
  }

  @Test
  void idleLegacyStream_isDoneAtOnce_whateverIsInItsQueue() {
    try (SimulatedDriver own = open("queues=1")) {
      long other = own.streams().streamCreateWithPriority(0, 1, 0);
      CountDownLatch goOn = hold(own, 0, other);
      own.streams().streamSynchronize(0, 0);
      assertThat(own.streams().streamQuery(0, other)).isFalse();
      goOn.countDown();
      own.streams().streamSynchronize(0, other);
    }
  }

  @Test
  void launchesOfAnEmptyGraph_queueItsStartAndEndAlone() {
    long stream = stream(0);
    long graph = driver.graphs().graphCreate();
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    CountDownLatch goOn = hold(0, stream);
    for (int launch = 0; launch < 3; launch++) {
      long before = driver.machine.streams.get(stream).lastNumber();
      driver.graphs().graphLaunch(0, executable, stream);
      assertThat(driver.machine.streams.get(stream).lastNumber() - before).isEqualTo(2);
    }
    goOn.countDown();
    driver.streams().streamSynchronize(0, stream);
  }
}
