package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.SimBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What calls and copies cost on the simulated clock. */
class CallCostsTest {
  private static final long BYTES = 1 << 20;
  private static final long LATENCY = 1_500;
  private static final long GRANULE = 2 << 20;

  private final SimulatedDriver driver = open("lazy");
  private final Map<String, Long> costs = new LinkedHashMap<>();
  private final Map<String, Long> expected = new LinkedHashMap<>();

  private static SimulatedDriver open(String pace) {
    return SimulatedDriver.open(
        SimulatedOptions.parse("devices=3,memory=256MiB,peers=0-1,pace=" + pace));
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private long now() {
    return driver.simulatedNanos(0);
  }

  /** A call that costs what every call does, and more. */
  private void cost(String name, long more, Runnable call) {
    long before = now();
    call.run();
    costs.put(name, now() - before - SimCosts.CALL);
    expected.put(name, more);
  }

  @Test
  void callsThatQueueOrAsk_costWhatEachOfThemDoes() {
    var streams = driver.streams();
    var events = driver.events();
    long stream = streams.streamCreateWithPriority(0, 1, 0);
    long event = events.eventCreate(0, 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    MemorySegment pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    MemorySegment managed = driver.memory().memAllocManaged(0, BYTES, 1);
    long at = managed.address();
    streams.streamSynchronize(0, stream);
    cost("a stream", SimCosts.STREAM_CREATE, () -> streams.streamCreateWithPriority(0, 1, 0));
    cost("query", SimCosts.STREAM_QUERY, () -> streams.streamQuery(0, stream));
    cost("query of an event", SimCosts.EVENT_QUERY, () -> events.eventQuery(0, event));
    cost("wait for no record", SimCosts.SUBMIT, () -> streams.streamWaitEvent(0, stream, event));
    cost("record", SimCosts.EVENT_RECORD, () -> events.eventRecord(0, event, stream));
    cost("wait", SimCosts.SUBMIT, () -> streams.streamWaitEvent(0, stream, event));
    cost("host function", SimCosts.SUBMIT, () -> streams.launchHostFunc(0, stream, () -> {}));
    cost(
        "wait for a value",
        SimCosts.SUBMIT,
        () -> streams.streamWaitValue32(0, stream, pinned.address(), 0, 0));
    cost(
        "fill",
        SimCosts.SUBMIT,
        () -> driver.transfers().memsetD8Async(0, memory, (byte) 1, BYTES, stream));
    cost(
        "copy",
        SimCosts.SUBMIT,
        () -> driver.transfers().memcpyAsync(0, memory, pinned.address(), BYTES, stream));
    cost(
        "prefetch",
        SimCosts.SUBMIT,
        () -> driver.memory().memPrefetchAsync(0, at, BYTES, 1, 0, stream));
    cost("priority", 0, () -> streams.streamGetPriority(0, stream));
    cost("devices", 0, () -> driver.devices().deviceGetCount());
    cost("memory", 0, () -> driver.devices().memGetInfo(0));
    cost("attribute", 0, () -> driver.memory().pointerGetAttribute(0, 2, memory));
    cost("event", 0, () -> events.eventCreate(0, 0));
    cost("pools", 0, () -> driver.pools().deviceGetDefaultMemPool(0));
    assertThat(costs).isEqualTo(expected);
  }

  @Test
  void callsAboutMemory_costWhatEachOfThemDoes() {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long[] made = new long[8];
    long alloc = SimCosts.alloc(BYTES);
    long host = SimCosts.hostAlloc(BYTES);
    var memory = driver.memory();
    cost("memory", alloc, () -> made[0] = memory.memAlloc(0, BYTES));
    cost("its free", alloc, () -> memory.memFree(0, made[0]));
    cost("pinned", host, () -> made[0] = memory.memHostAlloc(0, BYTES, 0).address());
    cost("its free too", host, () -> memory.memFreeHost(0, made[0]));
    cost("managed", host, () -> made[0] = memory.memAllocManaged(0, BYTES, 1).address());
    cost("free of managed", host, () -> memory.memFree(0, made[0]));
    MemorySegment segment = Arena.ofAuto().allocate(BYTES);
    cost("registered", host, () -> memory.memHostRegister(0, segment, 0));
    cost("unregistered", host, () -> memory.memHostUnregister(0, segment.address()));
    var ordered = driver.ordered();
    long pooled = 272;
    cost("first", pooled + 34_400, () -> made[0] = ordered.memAllocAsync(0, BYTES, stream));
    cost("second", pooled, () -> made[1] = ordered.memAllocAsync(0, 512, stream));
    cost("ordered free", pooled, () -> ordered.memFreeAsync(0, made[0], stream));
    driver.streams().streamSynchronize(0, stream);
    cost("free of a pool", pooled, () -> memory.memFree(0, made[1]));
    cost(
        "pool",
        SimCosts.POOL_CREATE,
        () -> made[2] = driver.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0)));
    assertThat(costs).isEqualTo(expected);
  }

  /** Whatever it had before. */
  @Test
  void poolThatWasTrimmed_paysForItsGrowthAgain() {
    var ordered = driver.ordered();
    long pool = driver.pools().deviceGetDefaultMemPool(0);
    for (int i = 0; i < 2; i++) {
      long[] made = new long[1];
      cost("growth", 272 + 2 * 34_400, () -> made[0] = ordered.memAllocAsync(0, 40 << 20, 0));
      assertThat(costs).isEqualTo(expected);
      ordered.memFreeAsync(0, made[0], 0);
      driver.streams().streamSynchronize(0, 0);
      driver.pools().memPoolTrimTo(pool, 0);
    }
  }

  @Test
  void callsAboutAddresses_costWhatEachOfThemDoes() {
    long[] made = new long[2];
    var virtual = driver.virtual();
    AllocationProperties here = AllocationProperties.ofDevice(0, 0);
    cost(
        "range",
        SimCosts.ADDRESS_RESERVE,
        () -> made[0] = virtual.memAddressReserve(2 * GRANULE, 0, 0));
    cost("handle", SimCosts.create(GRANULE), () -> made[1] = virtual.memCreate(GRANULE, here));
    cost("mapping", SimCosts.MAP, () -> virtual.memMap(made[0], GRANULE, 0, made[1]));
    cost("other", SimCosts.MAP, () -> virtual.memMap(made[0] + GRANULE, GRANULE, 0, made[1]));
    int[] zero = {0};
    cost(
        "access to one",
        SimCosts.SET_ACCESS,
        () -> virtual.memSetAccess(made[0], GRANULE, 1, zero, 3));
    cost(
        "access to two",
        2 * SimCosts.SET_ACCESS,
        () -> virtual.memSetAccess(made[0], 2 * GRANULE, 1, zero, 3));
    cost("question", 0, () -> virtual.memGetAccess(made[0], 1, 0));
    cost("release of a handle", 0, () -> virtual.memRelease(made[1]));
    assertThat(costs).isEqualTo(expected);
  }

  /** The host is as late as the device that it waits for, whoever ran the work. */
  @Test
  void whoWaitsForADevice_isAsLateAsItsWork() {
    Map<String, LongConsumer> waits = new LinkedHashMap<>();
    SimulatedDriver own = open("eager");
    try (own) {
      long stream = own.streams().streamCreateWithPriority(0, 1, 0);
      long event = own.events().eventCreate(0, 0);
      long memory = own.memory().memAlloc(0, 64 * BYTES);
      waits.put("free", _ -> own.memory().memFree(0, own.memory().memAlloc(0, 512)));
      waits.put(
          "free of the host",
          _ -> own.memory().memFreeHost(0, own.memory().memHostAlloc(0, 512, 0).address()));
      waits.put("device", _ -> own.devices().ctxSynchronize(0));
      waits.put("query", _ -> assertThat(own.streams().streamQuery(0, stream)).isTrue());
      waits.put("query of an event", _ -> assertThat(own.events().eventQuery(0, event)).isTrue());
      waits.put("event", _ -> own.events().eventSynchronize(0, event));
      waits.put("stream", _ -> own.streams().streamSynchronize(0, stream));
      waits.forEach((name, wait) -> {
        own.transfers().memsetD8Async(0, memory, (byte) 1, 64 * BYTES, stream);
        own.events().eventRecord(0, event, stream);
        wait.accept(stream);
        long after = own.events().eventCreate(0, 0);
        own.events().eventRecord(0, after, 0);
        assertThat(own.events().eventElapsedTime(0, event, after)).as(name).isPositive();
      });
    }
  }

  private SimBlock block(String kind, Arena arena) {
    MemorySegment segment = arena.allocate(64);
    return switch (kind) {
      case "device0", "device1", "device2" ->
          block(driver.memory().memAlloc(kind.charAt(kind.length() - 1) - '0', 64));
      case "pinned" -> block(driver.memory().memHostAlloc(0, 64, 0).address());
      case "managed" -> block(driver.memory().memAllocManaged(0, 64, 1).address());
      case "registered" -> {
        driver.memory().memHostRegister(0, segment, 0);
        yield block(segment.address());
      }
      case "pageable" -> HostBlock.pageable(driver.machine.device(0), segment);
      case "hosted" -> block(mapped(1, new AllocationProperties(0, 2, 0)));
      default -> block(mapped(kind.equals("pieces") ? 4 : 1, AllocationProperties.ofDevice(0, 0)));
    };
  }

  private SimBlock block(long address) {
    return Objects.requireNonNull(driver.machine.find(address)).block();
  }

  /** Memory that is mapped in pieces. */
  private long mapped(int pieces, AllocationProperties properties) {
    long address = driver.virtual().memAddressReserve(4 * GRANULE, 0, 0);
    for (int i = 0; i < pieces; i++) {
      long bytes = 4 * GRANULE / pieces;
      long handle = driver.virtual().memCreate(bytes, properties);
      driver.virtual().memMap(address + i * bytes, bytes, 0, handle);
    }
    driver.virtual().memSetAccess(address, 4 * GRANULE, 1, new int[] {0}, 3);
    return address;
  }

  @ParameterizedTest
  @CsvSource({
    "device0, device0, 2129",
    "device2, device2, 2129",
    "device0, device2, 27.65",
    "device2, device1, 27.65",
    "device0, pinned, 55.3",
    "device0, managed, 55.3",
    "device0, registered, 55.3",
    "device1, pageable, 8.0",
    "pinned, device0, 55.3",
    "managed, device0, 55.3",
    "registered, device1, 55.3",
    "pageable, device0, 16.1",
    "pinned, pinned, 10",
    "pageable, pinned, 10",
    "managed, pageable, 10",
    "registered, managed, 10",
    "mapped, pinned, 55.3",
    "pinned, mapped, 55.3",
    "mapped, pageable, 8.0",
    "pageable, mapped, 16.1",
    "mapped, device2, 27.65",
    "hosted, device0, 55.3",
    "device1, hosted, 55.3",
    "hosted, pinned, 10",
    "pageable, hosted, 10",
  })
  void copy_isAsFastAsWasMeasured(String target, String source, double bytesPerNano) {
    long bytes = 1L << 30;
    try (Arena arena = Arena.ofConfined()) {
      double nanos = SimCosts.copy(block(target, arena), block(source, arena), bytes) - LATENCY;
      assertThat(nanos).isEqualTo((double) Math.round(bytes / bytesPerNano));
    }
  }

  @Test
  void copyBetweenDevices_isFast_ifEitherHasAccessToTheOther() {
    for (int[] enabled : new int[][] {{0, 1}, {1, 0}}) {
      driver.devices().ctxEnablePeerAccess(enabled[0], enabled[1]);
      try (Arena arena = Arena.ofConfined()) {
        SimBlock one = block("device0", arena);
        SimBlock other = block("device1", arena);
        long peer = LATENCY + Math.round(BYTES / 391.0);
        assertThat(SimCosts.copy(one, other, BYTES)).isEqualTo(peer);
        assertThat(SimCosts.copy(other, one, BYTES)).isEqualTo(peer);
      }
      driver.devices().ctxDisablePeerAccess(enabled[0], enabled[1]);
    }
  }

  @Test
  void memoryThatIsMappedInPieces_isSlower_howeverLittleOfItIsCopied() {
    try (Arena arena = Arena.ofConfined()) {
      SimBlock plain = block("device0", arena);
      long last = SimCosts.copy(plain, plain, 1L << 30);
      for (String kind : new String[] {"mapped", "pieces"}) {
        SimBlock mapped = block(kind, arena);
        long cost = SimCosts.copy(plain, mapped, 1L << 30);
        assertThat(cost).isGreaterThan(last).isEqualTo(SimCosts.copy(mapped, plain, 1L << 30));
        last = cost;
      }
    }
  }

  /** Whichever of them the simulator runs last. */
  @Test
  void waitForADevice_isAsLongAsTheLongestOfItsStreams() {
    for (String order : new String[] {"fair", "random", "priority"}) {
      for (boolean longFirst : new boolean[] {true, false}) {
        try (SimulatedDriver two =
            SimulatedDriver.open(
                SimulatedOptions.parse("memory=256MiB,pace=eager,queues=0,order=" + order))) {
          long memory = two.memory().memAlloc(0, 128 << 20);
          long[] streams = new long[2];
          for (int i = 0; i < 2; i++) {
            streams[i] = two.streams().streamCreateWithPriority(0, 1, 0);
          }
          long before = two.simulatedNanos(0);
          for (int i = 0; i < 2; i++) {
            long bytes = longFirst == (i == 0) ? 128 << 20 : 64;
            two.transfers().memsetD8Async(0, memory, (byte) 1, bytes, streams[i]);
          }
          two.devices().ctxSynchronize(0);
          assertThat(two.simulatedNanos(0) - before).as(order).isGreaterThan(20_000);
        }
      }
    }
  }
}
