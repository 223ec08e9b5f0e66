package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.sim.internal.base.Addresses;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The first and the last of what is allowed, and what lies just beside it. */
@Timeout(60)
class ExactBoundsTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final long PAGE = 2 * MIB;
  private static final int DEVICE_SHIFT = 56;
  private static final int CLASS_SHIFT = 50;

  private long freeBytes() {
    return driver.devices().memGetInfo(0).freeBytes();
  }

  @Test
  void flagsOfHostMemory_haveARange() {
    for (int flags = 0; flags <= 7; flags++) {
      MemorySegment pinned = driver.memory().memHostAlloc(0, 8, flags);
      driver.memory().memFreeHost(0, pinned.address());
    }
    MemorySegment own = Arena.ofAuto().allocate(8, 8);
    for (int flags = 0; flags <= 15; flags++) {
      driver.memory().memHostRegister(0, own, flags);
      driver.memory().memHostUnregister(0, own.address());
    }
    for (int beside : new int[] {Integer.MIN_VALUE, -1, 8, 16, Integer.MAX_VALUE}) {
      String text = "flags: " + beside + " (expected: 0 to ";
      assertFails(INVALID, text + 7, () -> driver.memory().memHostAlloc(0, 8, beside));
      if (beside != 8) {
        assertFails(INVALID, text + 15, () -> driver.memory().memHostRegister(0, own, beside));
      }
    }
    assertThat(driver.liveAllocations()).isZero();
  }

  /** Only the share of the cache has a largest value: no other limit is cut off. */
  @Test
  void limitOfADevice_isWhatItWasSetTo_howeverLarge() {
    for (int limit : new int[] {0, 1, 2, 4}) {
      for (long value : new long[] {0, 1, 1L << 40, Long.MAX_VALUE}) {
        driver.devices().ctxSetLimit(1, limit, value);
        assertThat(driver.devices().ctxGetLimit(1, limit)).as("limit %d", limit).isEqualTo(value);
      }
    }
    for (long value : new long[] {0, 128}) {
      driver.devices().ctxSetLimit(1, 5, value);
      assertThat(driver.devices().ctxGetLimit(1, 5)).isEqualTo(value);
    }
  }

  /** Both events count, whichever of them is not there yet. */
  @Test
  void timeBetweenEvents_isNotReady_beforeBothAreDone() {
    long busy = stream(0);
    long done = driver.events().eventCreate(0, 0);
    long late = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, done, 0);
    driver.streams().streamSynchronize(0, 0);
    CountDownLatch goOn = hold(0, busy);
    driver.events().eventRecord(0, late, busy);
    CudaStatus status = CudaStatus.NOT_READY;
    assertFails(status, "not done", () -> driver.events().eventElapsedTime(0, done, late));
    assertFails(status, "not done", () -> driver.events().eventElapsedTime(0, late, done));
    goOn.countDown();
    driver.streams().streamSynchronize(0, busy);
    assertThat(driver.events().eventElapsedTime(0, done, late)).isNotNegative();
  }

  @Test
  void legacyStream_joinsNoCapture() {
    long captured = stream(0);
    long event = driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(0, captured, 2);
    driver.events().eventRecord(0, event, captured);
    assertFails(
        CudaStatus.CAPTURED_EVENT,
        "that the stream cannot join",
        () -> driver.streams().streamWaitEvent(0, 0, event));
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, captured));
    assertThat(driver.streams().streamQuery(0, 0)).isTrue();
  }

  /** Devices, sizes and places that no memory has, each the first behind those that there are. */
  @Test
  void addressesThatNoDeviceGives_areOfNoMemory() {
    long device = 1L << DEVICE_SHIFT;
    long last = (long) Addresses.MAX_DEVICES << DEVICE_SHIFT;
    long memory = driver.memory().memAlloc(0, 64);
    for (long none :
        new long[] {
          3L << DEVICE_SHIFT,
          (3L << DEVICE_SHIFT) + memory - device,
          last,
          last + memory - device,
          device,
          memory + PAGE,
          device | 49L << CLASS_SHIFT,
          device | 50L << CLASS_SHIFT,
          device | 51L << CLASS_SHIFT,
          device | 63L << CLASS_SHIFT
        }) {
      String text = "0x%x (expected: an address of live memory)".formatted(none);
      assertFails(INVALID, text, () -> driver.memory().memFree(0, none));
      assertFails(INVALID, text, () -> driver.memory().pointerGetAttribute(0, 2, none));
      assertFails(INVALID, text, () -> driver.transfers().memcpyAsync(0, none, memory, 8, 0));
    }
    assertThat(driver.liveAllocations()).isEqualTo(1);
  }

  /** Memory has places of sizes that are powers of two; what is left of one is of no memory. */
  @Test
  void addressesBehindTheEndOfMemory_areOfNone() {
    for (int bytes : new int[] {1, 513, 700, 4097, 3 << 20}) {
      long memory = driver.memory().memAlloc(0, bytes);
      assertThat(driver.memory().pointerGetAttribute(0, 2, memory + bytes - 1)).isEqualTo(2);
      for (long past : new long[] {1, 2, 100}) {
        long none = memory + bytes + past;
        String text = "0x%x (expected: an address of live memory)".formatted(none);
        assertFails(INVALID, text, () -> driver.memory().memFree(0, none));
        assertFails(INVALID, text, () -> driver.memory().pointerGetAttribute(0, 2, none));
        assertFails(INVALID, text, () -> driver.transfers().memsetD8Async(0, none, (byte) 1, 1, 0));
      }
    }
  }

  @Test
  void negativeParts_areRefused_byWhatLooksAtThem() {
    long managed = driver.memory().memAllocManaged(0, 64, 1).address();
    long device = driver.memory().memAlloc(0, 64);
    Map<String, LongConsumer> calls = new LinkedHashMap<>();
    var memory = driver.memory();
    calls.put("view", bytes -> memory.hostView(0, managed, bytes, Arena.ofAuto()));
    calls.put("copy", bytes -> driver.transfers().memcpyAsync(0, device, managed, bytes, 0));
    calls.put("advice", bytes -> memory.memAdvise(0, managed, bytes, 1, 1, 0));
    calls.put("prefetch", bytes -> memory.memPrefetchAsync(0, managed, bytes, 1, 0, 0));
    calls.forEach((name, call) -> {
      for (long bytes : new long[] {-1, Long.MIN_VALUE, 65}) {
        assertFails(INVALID, String.valueOf(bytes), () -> call.accept(bytes));
      }
      call.accept(64);
    });
  }

  /** It is no part of a page that others share, neither while it is there nor when it is freed. */
  @Test
  void allocationOfAPage_hasAPageOfItsOwn() {
    long small = driver.memory().memAlloc(0, 512);
    long free = freeBytes();
    for (int i = 0; i < 3; i++) {
      long page = driver.memory().memAlloc(0, PAGE);
      assertThat(freeBytes()).isEqualTo(free - PAGE);
      driver.memory().memFree(0, page);
      assertThat(freeBytes()).isEqualTo(free);
      long other = driver.memory().memAlloc(0, 512);
      assertThat(freeBytes()).as("beside the first").isEqualTo(free);
      driver.memory().memFree(0, other);
    }
    driver.memory().memFree(0, small);
    assertThat(freeBytes()).isEqualTo(free + PAGE);
  }

  /** What takes nothing is there where nothing is left. */
  @Test
  void fullDevice_hasRoomForWhatTakesNone() {
    driver.memory().memAlloc(0, freeBytes());
    assertThat(freeBytes()).isZero();
    long stream = stream(0);
    long event = driver.events().eventCreate(0, 0);
    driver.events().eventRecord(0, event, stream);
    driver.streams().streamSynchronize(0, stream);
    assertThat(driver.events().eventQuery(0, event)).isTrue();
  }

  /** No size is so large that it becomes another one, and none that is refused takes anything. */
  @Test
  void poolThatIsAskedForMoreThanThereIs_hasNone() {
    long pool = driver.pools().deviceGetDefaultMemPool(0);
    long held = driver.ordered().memAllocAsync(0, 64, 0);
    driver.streams().streamSynchronize(0, 0);
    long reserved = driver.pools().memPoolGetAttribute(pool, 5);
    long step = 32 * MIB;
    for (long most : new long[] {Long.MAX_VALUE, Long.MAX_VALUE / step * step, 1L << 62}) {
      for (long less : new long[] {0, 1, 511, 512, 513, 1024, step - 1, step, 2 * step}) {
        long bytes = most - less;
        assertFails(
            CudaStatus.OUT_OF_MEMORY, "", () -> driver.ordered().memAllocAsync(0, bytes, 0));
        driver.streams().streamSynchronize(0, 0);
        assertThat(driver.pools().memPoolGetAttribute(pool, 5)).isEqualTo(reserved);
        assertThat(driver.pools().memPoolGetAttribute(pool, 7)).isEqualTo(512);
      }
    }
    driver.ordered().memFreeAsync(0, held, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.liveAllocations()).isZero();
  }

  /** Which takes calls about descriptors: a part of the library that need not be there. */
  @Test
  void poolsAndMemory_haveHandles_ifTheyCanBeShared() {
    int handles = DescriptorCalls.find().isPresent() ? 1 : 0;
    assertThat(driver.devices().deviceGetAttribute(119, 0)).isEqualTo(handles);
    assertThat(driver.devices().deviceGetAttribute(103, 0)).isEqualTo(handles);
  }

  @Test
  void alignmentOfAddresses_isAPowerOfTwo_orNothing() {
    VirtualCalls virtual = driver.virtual();
    for (long alignment : new long[] {-1, Long.MIN_VALUE, 3, 3 * PAGE, Long.MAX_VALUE}) {
      assertFails(
          INVALID,
          "alignment: %d (expected: 0 or a power of 2)".formatted(alignment),
          () -> virtual.memAddressReserve(PAGE, alignment, 0));
    }
    for (long alignment : new long[] {0, 1, 512, PAGE, 4 * PAGE}) {
      long range = virtual.memAddressReserve(PAGE, alignment, 0);
      assertThat(range % Math.max(alignment, PAGE)).isZero();
    }
  }

  /** Where all were in use once, those that are free are found: the smallest place that fits. */
  @Test
  void addressesThatWereAllInUse_areGivenAgain_theFirstFirst() {
    VirtualCalls virtual = driver.virtual();
    long all = virtual.memAddressReserve(Addresses.VIRTUAL_BYTES, 0, 0);
    assertThat(all).isEqualTo(Addresses.VIRTUAL_START);
    assertFails(CudaStatus.OUT_OF_MEMORY, "", () -> virtual.memAddressReserve(PAGE, 0, 0));
    virtual.memAddressFree(all, Addresses.VIRTUAL_BYTES);
    for (int i = 0; i < 4; i++) {
      assertThat(virtual.memAddressReserve(PAGE, 0, 0)).isEqualTo(all + i * PAGE);
    }
    virtual.memAddressFree(all + PAGE, PAGE);
    assertThat(virtual.memAddressReserve(PAGE, 0, 0)).isEqualTo(all + PAGE);
    virtual.memAddressFree(all, PAGE);
    assertThat(virtual.memAddressReserve(PAGE, 2 * PAGE, 0)).isEqualTo(all);
  }

  /** What is left says of each memory whether somebody holds it, and whether it is mapped. */
  @Test
  void report_saysWhichMemoryIsHeld_andWhichIsMapped() {
    VirtualCalls virtual = driver.virtual();
    long range = virtual.memAddressReserve(2 * PAGE, 0, 0);
    AllocationProperties properties = AllocationProperties.ofDevice(0, 0);
    long handle = virtual.memCreate(PAGE, properties);
    String line = "allocation handle 0x%x of %d bytes of device 0".formatted(handle, PAGE);
    assertThat(driver.report()).contains(line + ", held\n");
    virtual.memMap(range, PAGE, 0, handle);
    virtual.memMap(range + PAGE, PAGE, 0, handle);
    assertThat(driver.report()).contains(line + ", held, mapped\n");
    virtual.memUnmap(range, PAGE);
    assertThat(driver.report()).contains(line + ", held, mapped\n");
    virtual.memRelease(handle);
    assertThat(driver.report()).contains(line + ", mapped\n");
    virtual.memUnmap(range + PAGE, PAGE);
    assertThat(driver.report()).doesNotContain("allocation handle");
  }

  /** An address is a wish: one that no range can have is as good as none. */
  @Test
  void addressThatNoRangeCanHave_isPassedOver() {
    VirtualCalls virtual = driver.virtual();
    long last = Long.MAX_VALUE / PAGE * PAGE;
    long next = Addresses.VIRTUAL_START;
    for (long wanted : new long[] {PAGE, last, Long.MIN_VALUE, -PAGE}) {
      assertThat(virtual.memAddressReserve(2 * PAGE, 0, wanted)).isEqualTo(next);
      next += 2 * PAGE;
    }
  }

  @Test
  void report_saysOfMemoryOfTheHost_thatItIsThere() {
    AllocationProperties host = new AllocationProperties(0, MemLocationType.HOST_NUMA, 0);
    long handle = driver.virtual().memCreate(PAGE, host);
    assertThat(driver.report())
        .contains("allocation handle 0x%x of %d bytes of the host, held\n".formatted(handle, PAGE));
    driver.virtual().memRelease(handle);
  }
}
