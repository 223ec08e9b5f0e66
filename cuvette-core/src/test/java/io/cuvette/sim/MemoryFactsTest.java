package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.TransferCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.LongConsumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** What is true of memory of every kind: sizes of nothing, access, places, names and reports. */
class MemoryFactsTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final long GRANULE = 2 * MIB;
  private static final int PREFERRED_TYPE = 5;

  private static final List<PoolProperties> POOLS =
      List.of(
          new PoolProperties(1, 0, 1, 0, 0),
          new PoolProperties(1, 0, 1, 1, 0),
          new PoolProperties(1, 0, 2, 0, 0),
          new PoolProperties(1, 0, 3, 0, 0),
          new PoolProperties(2, 0, 0, 0, 0),
          new PoolProperties(2, 0, 1, 1, 0),
          new PoolProperties(2, 0, 2, 0, 0));

  private final long stream = stream(0);

  @Test
  void negativeSizes_areRefusedByEveryPool_andNothingIsTaken() {
    for (PoolProperties each : POOLS) {
      long pool = driver.pools().memPoolCreate(each);
      String before = SimOperations.state(driver, 0);
      for (long bytes : new long[] {-1, -512, Long.MIN_VALUE}) {
        assertFails(
            INVALID,
            "bytes: " + bytes,
            () -> driver.ordered().memAllocFromPoolAsync(0, bytes, pool, stream));
      }
      assertThat(SimOperations.state(driver, 0)).isEqualTo(before);
      for (int attribute = 5; attribute <= 8; attribute++) {
        assertThat(driver.pools().memPoolGetAttribute(pool, attribute)).isZero();
      }
      driver.pools().memPoolDestroy(pool);
    }
    assertFails(INVALID, "bytes: -1", () -> driver.ordered().memAllocAsync(0, -1, stream));
  }

  /** Managed memory of a pool prefers the place of its pool, if that has one. */
  @Test
  void memoryOfAPoolOfManagedMemory_prefersThePlaceOfItsPool() {
    for (PoolProperties each : POOLS) {
      if (each.allocationType() == 2) {
        long pool = driver.pools().memPoolCreate(each);
        long address = driver.ordered().memAllocFromPoolAsync(0, 64, pool, stream);
        driver.streams().streamSynchronize(0, stream);
        assertThat(driver.memory().memRangeGetAttribute(0, PREFERRED_TYPE, address, 64))
            .isEqualTo(each.locationType());
        long plain = driver.memory().memAllocManaged(0, 64, 1).address();
        for (int attribute = 1; attribute <= 8; attribute++) {
          int value = driver.memory().memRangeGetAttribute(0, attribute, address, 64);
          int usual = driver.memory().memRangeGetAttribute(0, attribute, plain, 64);
          boolean isPlace = attribute == 2 || attribute == 5 || attribute == 6;
          if (each.locationType() == 0 || !isPlace) {
            assertThat(value).as("attribute %d", attribute).isEqualTo(usual);
          } else if (each.locationType() == 1 && attribute != 5) {
            assertThat(value).as("attribute %d", attribute).isEqualTo(each.locationId());
          }
        }
      }
    }
  }

  /** Queued before its free, and run behind it, since nothing orders the two. */
  @Test
  void memoryThatIsFreedBeforeAQueuedUse_failsTheDevice_whateverUsesIt() {
    List<String> names = List.of("prefetch", "fill", "copy to", "copy from");
    for (String name : names) {
      try (SimulatedDriver own =
          SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB,pace=eager,queues=0"))) {
        long pool = own.pools().memPoolCreate(new PoolProperties(2, 0, 1, 0, 0));
        long one = own.streams().streamCreateWithPriority(0, 1, 0);
        long other = own.streams().streamCreateWithPriority(0, 1, 0);
        long device = own.memory().memAlloc(0, 64);
        long address = own.ordered().memAllocFromPoolAsync(0, 64, pool, one);
        own.streams().streamSynchronize(0, one);
        CountDownLatch goOn = hold(own, 0, one);
        switch (name) {
          case "prefetch" -> own.memory().memPrefetchAsync(0, address, 64, 1, 0, one);
          case "fill" -> own.transfers().memsetD8Async(0, address, (byte) 1, 64, one);
          case "copy to" -> own.transfers().memcpyAsync(0, address, device, 64, one);
          default -> own.transfers().memcpyAsync(0, device, address, 64, one);
        }
        own.ordered().memFreeAsync(0, address, other);
        own.streams().streamSynchronize(0, other);
        goOn.countDown();
        assertFails(
            CudaStatus.ILLEGAL_ADDRESS,
            "freed before",
            () -> own.streams().streamSynchronize(0, one));
      }
    }
  }

  @Test
  void operationsOfNoBytes_touchNothing_andStillSayWhatIsNotAligned() {
    TransferCalls transfers = driver.transfers();
    MemorySegment none = Arena.ofAuto().allocate(8).asSlice(0, 0);
    for (long address : new long[] {0, 8, driver.memory().memAlloc(0, 64), 0x7FL << 56}) {
      transfers.memcpyAsync(0, address, address, 0, stream);
      transfers.memcpyPeerAsync(0, address, 0, address, 0, 0, stream);
      transfers.memcpyHtoDAsync(0, address, none, stream);
      transfers.memcpyDtoHAsync(0, none, address, stream);
      BoxCopy.Side side = new BoxCopy.Side(address, 8, 1);
      for (long[] size : new long[][] {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}) {
        transfers.memcpy3DAsync(0, new BoxCopy(side, side, size[0], size[1], size[2]), stream);
      }
      transfers.memsetD8Async(0, address + 1, (byte) 1, 0, stream);
      transfers.memsetD16Async(0, address + 2, (short) 1, 0, stream);
      transfers.memsetD32Async(0, address + 4, 1, 0, stream);
      String two = "(expected: a multiple of 2)";
      String four = "(expected: a multiple of 4)";
      for (long count : new long[] {0, 1}) {
        for (int odd : new int[] {1, 2, 3}) {
          long at = address + odd;
          assertFails(INVALID, four, () -> transfers.memsetD32Async(0, at, 1, count, stream));
          if (odd != 2) {
            assertFails(
                INVALID, two, () -> transfers.memsetD16Async(0, at, (short) 1, count, stream));
          }
        }
      }
    }
    assertThat(driver.streams().streamQuery(0, stream)).isTrue();
  }

  @Test
  void negativeOrEndlessSizes_areRefusedByEveryOperation() {
    TransferCalls transfers = driver.transfers();
    long to = driver.memory().memAlloc(0, 64);
    long from = driver.memory().memAlloc(0, 64);
    for (long bytes :
        new long[] {-1, -64, Long.MIN_VALUE, Long.MAX_VALUE, Long.MAX_VALUE / 2 + 1}) {
      List<ThrowingCallable> all =
          List.of(
              () -> transfers.memcpyAsync(0, to, from, bytes, stream),
              () -> transfers.memcpyPeerAsync(0, to, 0, from, 0, bytes, stream),
              () -> transfers.memsetD8Async(0, to, (byte) 1, bytes, stream),
              () -> transfers.memsetD16Async(0, to, (short) 1, bytes, stream),
              () -> transfers.memsetD32Async(0, to, 1, bytes, stream),
              () ->
                  transfers.memcpyBatchAsync(
                      0, new long[] {to}, new long[] {from}, new long[] {bytes}, stream),
              () -> driver.memory().memPrefetchAsync(0, to, bytes, 1, 0, stream));
      all.forEach(each -> assertFails(INVALID, "", each));
    }
    assertThat(driver.streams().streamQuery(0, stream)).isTrue();
  }

  /** By the device of the stream, which touches both sides of each copy itself. */
  @Test
  void memoryOfAPool_isForTheDevicesThatHaveAccess_whateverTouchesIt() {
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    long pooled = driver.ordered().memAllocFromPoolAsync(0, 512, pool, stream);
    driver.streams().streamSynchronize(0, stream);
    long mine = driver.memory().memAlloc(1, 512);
    MemorySegment pinned = driver.memory().memHostAlloc(1, 64, 0);
    MemorySegment pageable = Arena.ofAuto().allocate(64);
    long other = stream(1);
    TransferCalls t = driver.transfers();
    BoxCopy.Side in = new BoxCopy.Side(pooled, 64, 1);
    BoxCopy.Side out = new BoxCopy.Side(mine, 64, 1);
    long[] here = {mine};
    long[] there = {pooled};
    long[] size = {64};
    Map<String, LongConsumer> reads = new LinkedHashMap<>();
    reads.put("copy from", s -> t.memcpyAsync(1, mine, pooled, 64, s));
    reads.put("rows from", s -> t.memcpy3DAsync(1, new BoxCopy(out, in, 8, 1, 1), s));
    reads.put("batch from", s -> t.memcpyBatchAsync(1, here, there, size, s));
    reads.put("pinned out", s -> t.memcpyDtoHAsync(1, pinned, pooled, s));
    reads.put("pageable out", s -> t.memcpyDtoHAsync(1, pageable, pooled, s));
    Map<String, LongConsumer> writes = new LinkedHashMap<>();
    writes.put("copy to", s -> t.memcpyAsync(1, pooled, mine, 64, s));
    writes.put("rows to", s -> t.memcpy3DAsync(1, new BoxCopy(in, out, 8, 1, 1), s));
    writes.put("batch to", s -> t.memcpyBatchAsync(1, there, here, size, s));
    writes.put("pinned in", s -> t.memcpyHtoDAsync(1, pooled, pinned, s));
    writes.put("pageable in", s -> t.memcpyHtoDAsync(1, pooled, pageable, s));
    writes.put("fill of bytes", s -> t.memsetD8Async(1, pooled, (byte) 1, 8, s));
    writes.put("fill of shorts", s -> t.memsetD16Async(1, pooled, (short) 1, 8, s));
    writes.put("fill of ints", s -> t.memsetD32Async(1, pooled, 1, 8, s));
    for (int access : new int[] {0, 1, 3}) {
      driver.pools().memPoolSetAccess(pool, 1, new int[] {1}, access);
      reads.forEach((_, use) -> assertUse(access >= 1, use, other));
      writes.forEach((_, use) -> assertUse(access == 3, use, other));
      driver.streams().streamSynchronize(1, other);
    }
  }

  private static void assertUse(boolean isAllowed, LongConsumer use, long stream) {
    if (isAllowed) {
      use.accept(stream);
    } else {
      assertFails(INVALID, "has access", () -> use.accept(stream));
    }
  }

  private long mapped(AllocationProperties properties) {
    long address = driver.virtual().memAddressReserve(GRANULE, 0, 0);
    long handle = driver.virtual().memCreate(GRANULE, properties);
    driver.virtual().memMap(address, GRANULE, 0, handle);
    driver.virtual().memRelease(handle);
    return address;
  }

  private void access(long address, int type, int[] ids, int... flags) {
    driver.virtual().memSetAccess(address, GRANULE, type, ids, flags);
  }

  private int access(long address, int type, int id) {
    return driver.virtual().memGetAccess(address, type, id);
  }

  @Test
  void accessToMappedMemory_isSetForAllPlacesOrForNone() {
    long address = mapped(AllocationProperties.ofDevice(0, 0));
    int[] both = {0, 1};
    access(address, 1, both, 3, 1);
    for (int[] wrong : new int[][] {{0, 2}, {2, 0}, {0, -1}, {0, 4}, {2}}) {
      assertFails(INVALID, "access: ", () -> access(address, 1, both, wrong));
      assertThat(access(address, 1, 0)).isEqualTo(3);
      assertThat(access(address, 1, 1)).isEqualTo(1);
    }
    assertFails(
        CudaStatus.INVALID_DEVICE, "device: 2", () -> access(address, 1, new int[] {0, 2}, 0, 0));
    assertThat(access(address, 1, 0)).isEqualTo(3);
    access(address, 1, both, 0);
    assertThat(access(address, 1, 0)).isZero();
    assertThat(access(address, 1, 1)).isZero();
  }

  @Test
  void mappedMemory_isReachedByPeers_andThatOfTheHostByAll() {
    try (SimulatedDriver apart =
        SimulatedDriver.open(SimulatedOptions.parse("devices=3,memory=64MiB,peers=0-1"))) {
      long onDevice = onOther(apart, AllocationProperties.ofDevice(0, 0));
      long onHost = onOther(apart, new AllocationProperties(0, 2, 0));
      for (int device = 0; device < 3; device++) {
        int[] one = {device};
        apart.virtual().memSetAccess(onHost, GRANULE, 1, one, 3);
        assertThat(apart.virtual().memGetAccess(onHost, 1, device)).isEqualTo(3);
        if (device < 2) {
          apart.virtual().memSetAccess(onDevice, GRANULE, 1, one, 3);
        } else {
          assertFails(
              CudaStatus.INVALID_DEVICE,
              "device 2 cannot reach memory of device 0",
              () -> apart.virtual().memSetAccess(onDevice, GRANULE, 1, one, 1));
          apart.virtual().memSetAccess(onDevice, GRANULE, 1, one, 0);
        }
        assertThat(apart.virtual().memGetAccess(onDevice, 1, device)).isEqualTo(device < 2 ? 3 : 0);
      }
      int[] host = {0};
      apart.virtual().memSetAccess(onHost, GRANULE, 2, host, 3);
      assertThat(apart.virtual().memGetAccess(onHost, 2, 0)).isEqualTo(3);
      assertFails(
          CudaStatus.NOT_SUPPORTED,
          "the host cannot reach memory of device 0",
          () -> apart.virtual().memSetAccess(onDevice, GRANULE, 2, host, 3));
      apart.virtual().memSetAccess(onDevice, GRANULE, 2, host, 0);
    }
  }

  private static long onOther(SimulatedDriver own, AllocationProperties properties) {
    long address = own.virtual().memAddressReserve(GRANULE, 0, 0);
    own.virtual().memMap(address, GRANULE, 0, own.virtual().memCreate(GRANULE, properties));
    return address;
  }

  @Test
  void handleTypes_areNamedForTheirPlace() {
    AllocationProperties device = new AllocationProperties(2, 1, 0);
    AllocationProperties host = new AllocationProperties(1, 2, 0);
    assertFails(
        INVALID,
        "handle types: 2 of device memory (expected: 0 or 1)",
        () -> driver.virtual().memCreate(GRANULE, device));
    assertFails(
        INVALID,
        "handle types: 1 of host memory (expected: 0)",
        () -> driver.virtual().memCreate(GRANULE, host));
  }

  /** A copy between devices may be of addresses that are in no device by their number. */
  @Test
  void peerCopy_ofMappedMemory_isOfAnyDevices() {
    long one = mapped(AllocationProperties.ofDevice(0, 0));
    long other = mapped(AllocationProperties.ofDevice(1, 0));
    for (long each : new long[] {one, other}) {
      access(each, 1, new int[] {0, 1}, 3);
    }
    driver.transfers().memsetD8Async(0, one, (byte) 7, 64, stream);
    driver.transfers().memcpyPeerAsync(0, other, 1, one, 0, 64, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(other, 64)).containsOnly(7);
  }

  @Test
  void report_hasEachThingWithWhatItIs() {
    assertThat(driver.report()).contains("stream id").doesNotContain("allocation handle");
    AllocationProperties here = AllocationProperties.ofDevice(0, 0);
    long held = driver.virtual().memCreate(GRANULE, here);
    long both = driver.virtual().memCreate(GRANULE, here);
    long address = driver.virtual().memAddressReserve(2 * GRANULE, 0, 0);
    driver.virtual().memMap(address, GRANULE, 0, both);
    long mapped = driver.virtual().memCreate(GRANULE, here);
    driver.virtual().memMap(address + GRANULE, GRANULE, 0, mapped);
    driver.virtual().memRelease(mapped);
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 2, 0, 0));
    long memory = driver.memory().memAlloc(1, 100);
    List<String> lines = driver.report().lines().toList();
    assertThat(lines)
        .hasSize(7)
        .anyMatch(line -> line.matches("DEVICE memory 0x%x: .*device 1".formatted(memory)))
        .anyMatch(line -> line.matches("pool 0x%x of .*".formatted(pool)))
        .anyMatch(line -> line.matches("allocation handle 0x%x of .*, held".formatted(held)))
        .anyMatch(
            line -> line.matches("allocation handle 0x%x of .*, held, mapped".formatted(both)))
        .anyMatch(line -> line.matches("allocation handle 0x%x of [^,]*.*".formatted(mapped)))
        .anyMatch(line -> line.equals("1 reserved ranges of addresses, 2 mappings"))
        .noneMatch(line -> line.contains("imported"));
    assertThat(lines.stream().filter(line -> line.endsWith("mapped"))).hasSize(2);
    assertThat(lines.stream().filter(line -> line.contains("held"))).hasSize(2);
  }

  /** Numbers of streams and memory are those of nothing else, and begin at 1. */
  @Test
  void everythingThatHasANumber_hasOneOfItsOwn() {
    Set<Long> ids = new HashSet<>();
    List<Long> all = new ArrayList<>();
    for (int device = 0; device < 2; device++) {
      for (long each : new long[] {0, 2, stream(device), stream(device)}) {
        all.add(driver.streams().streamGetId(device, each));
      }
      assertThat(driver.streams().streamGetId(device, 1))
          .isEqualTo(driver.streams().streamGetId(device, 0));
      for (long each :
          new long[] {
            driver.memory().memAlloc(device, 64),
            driver.memory().memHostAlloc(device, 64, 0).address(),
            driver.memory().memAllocManaged(device, 64, 1).address(),
            driver.ordered().memAllocAsync(device, 64, 0)
          }) {
        all.add(driver.memory().pointerGetAttribute(device, 7, each));
      }
    }
    assertThat(all).allMatch(id -> id > 0).allMatch(ids::add);
  }

  @Test
  void pointers_haveTheContextOfTheirDevice_andTheirPool() {
    long[] contexts = new long[2];
    for (int device = 0; device < 2; device++) {
      long plain = driver.memory().memAlloc(device, 64);
      contexts[device] = driver.memory().pointerGetAttribute(device, 1, plain);
      long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, device, 0));
      long address = driver.ordered().memAllocFromPoolAsync(device, 64, pool, 0);
      assertThat(driver.memory().pointerGetAttribute(device, 14, address)).isZero();
      assertThat(driver.memory().pointerGetAttribute(device, 17, address)).isEqualTo(pool);
      assertThat(driver.memory().pointerGetAttribute(device, 1, address))
          .isEqualTo(contexts[device]);
      assertThat(driver.memory().pointerGetAttribute(device, 14, plain)).isZero();
      assertThat(driver.memory().pointerGetAttribute(device, 17, plain)).isZero();
    }
    assertThat(contexts[0]).isNotZero().isNotEqualTo(contexts[1]);
  }

  @Test
  void memoryOfEveryPool_hasANumberThatNoOtherHas() {
    Set<Long> numbers = new HashSet<>();
    for (PoolProperties properties : POOLS) {
      long pool = driver.pools().memPoolCreate(properties);
      for (int i = 0; i < 2; i++) {
        long memory = driver.ordered().memAllocFromPoolAsync(0, KIB, pool, 0);
        long number = driver.memory().pointerGetAttribute(0, 7, memory);
        assertThat(numbers.add(number)).as("%s: %d", properties, number).isTrue();
      }
    }
    assertThat(numbers).doesNotContain(0L);
  }

  @Test
  void deviceWithoutVirtualMemory_saysSoInEveryAttribute() {
    for (boolean has : new boolean[] {true, false}) {
      try (SimulatedDriver own =
          SimulatedDriver.open(SimulatedOptions.DEFAULTS.withVirtualMemory(has))) {
        boolean isShared = DescriptorCalls.find().isPresent(); // by a module of its own
        assertThat(own.devices().deviceGetAttribute(119, 0)).isEqualTo(isShared ? 1 : 0);
        for (int attribute : new int[] {102, 103, 141, 145}) {
          int value = own.devices().deviceGetAttribute(attribute, 0);
          if (attribute == 103 && has) {
            assertThat(value).isEqualTo(own.devices().deviceGetAttribute(119, 0) & 1);
          } else {
            assertThat(value).as("attribute %d", attribute).isEqualTo(has ? 1 : 0);
          }
        }
      }
    }
  }

  @Test
  void handleOfALibrary_isForItsLibraryAndDevice_whateverIsDoneWithIt() {
    long handle = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);
    long gone = driver.math().mathHandleCreate(MathLibrary.CUBLAS, 0);
    driver.math().mathHandleDestroy(MathLibrary.CUBLAS, 0, gone);
    CudaStatus status = CudaStatus.INVALID_HANDLE;
    for (MathLibrary library : MathLibrary.values()) {
      for (int device = 0; device < 2; device++) {
        for (long each : new long[] {handle, gone, 0, NO_HANDLE}) {
          boolean fits = each == handle && device == 0 && library == MathLibrary.CUBLAS;
          int by = device;
          if (!fits) {
            assertFails(
                status, "", () -> driver.math().mathHandleSetStream(library, by, each, stream));
            assertFails(status, "", () -> driver.math().mathHandleDestroy(library, by, each));
            if (library == MathLibrary.CUBLAS) {
              assertFails(status, "", () -> driver.math().mathHandleSetWorkspace(by, each, 0, 0));
            }
          }
        }
      }
    }
    driver.math().mathHandleSetWorkspace(0, handle, 0, 0);
    assertThat(driver.liveMathHandles()).isEqualTo(1);
  }

  /** Refused calls count too, and questions of tests do not. */
  @Test
  void driverCalls_countEachCallOnce() {
    long before = driver.driverCalls();
    int _ = driver.devices().deviceGetCount();
    assertThat(driver.driverCalls()).isEqualTo(before + 1);
    long address = driver.memory().memAlloc(0, 64);
    driver.memory().memFree(0, address);
    assertThat(driver.driverCalls()).isEqualTo(before + 3);
    assertFails(INVALID, "", () -> driver.memory().memFree(0, address));
    assertThat(driver.driverCalls()).isEqualTo(before + 4);
    assertThat(driver.report()).isNotEmpty();
    assertThat(driver.liveAllocations() + driver.liveStreams()).isPositive();
    assertThat(driver.driverCalls()).isEqualTo(before + 4);
    driver.close();
    driver.close();
    assertFails(CudaStatus.DEINITIALIZED, "", () -> driver.devices().deviceGetCount());
    assertThat(driver.driverCalls()).isEqualTo(before + 5);
  }
}
