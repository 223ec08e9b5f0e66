package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory of the program that the devices get to know. */
class RegisteredMemoryTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final int READ_ONLY = 8;
  private static final int RANGE_START = 11;

  private final MemorySegment segment = Arena.ofAuto().allocate(64, 4096);

  private void register(MemorySegment memory, int flags) {
    driver.memory().memHostRegister(0, memory, flags);
  }

  private void unregister(long address) {
    driver.memory().memHostUnregister(0, address);
  }

  @Test
  void memoryThatADeviceCannotSee_isRefused() {
    String isNative = "(expected: native memory)";
    assertFails(INVALID, isNative, () -> register(MemorySegment.ofArray(new long[8]), 0));
    assertFails(INVALID, isNative, () -> register(segment.asSlice(0, 0), 0));
    assertFails(
        INVALID,
        "may not be written (expected: flag 8)",
        () -> register(segment.asReadOnly(), READ_ONLY - 1));
    assertFails(INVALID, "flags: 16 (expected: 0 to 15)", () -> register(segment, 16));
    assertFails(INVALID, "flags: -1", () -> register(segment, -1));
    assertThat(driver.liveAllocations()).isZero();
  }

  @Test
  void onlyTheStartOfRegisteredMemory_endsIt() {
    CudaStatus status = CudaStatus.HOST_MEMORY_NOT_REGISTERED;
    String first = "expected: the first of registered memory";
    assertFails(status, first, () -> unregister(segment.address()));
    register(segment, 0);
    assertFails(status, first, () -> unregister(segment.address() + 4));
    long pinned = driver.memory().memHostAlloc(0, 64, 0).address();
    assertFails(status, first, () -> unregister(pinned));
    long device = driver.memory().memAlloc(0, 64);
    assertFails(INVALID, "this is device memory", () -> unregister(device));
    unregister(segment.address());
    assertFails(status, first, () -> unregister(segment.address()));
    register(segment, 0);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void memoryRegisteredToBeRead_isRead_andWhoWritesItLosesTheDevice(boolean readOnlyForTheHost) {
    segment.fill((byte) 6);
    register(readOnlyForTheHost ? segment.asReadOnly() : segment, READ_ONLY);
    long memory = driver.memory().memAlloc(0, 64);
    driver.transfers().memcpyAsync(0, memory, segment.address(), 64, 0);
    assertThat(read(memory, 64)).containsOnly(6);
    driver.transfers().memsetD8Async(0, segment.address(), (byte) 7, 64, 0);
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "64 bytes that are registered as read-only",
        () -> driver.streams().streamSynchronize(0, 0));
    assertThat(segment.toArray(ValueLayout.JAVA_BYTE)).containsOnly(6);
  }

  @Test
  void memoryRightBehindWhatIsRegistered_isNotPartOfIt() {
    long half = segment.byteSize() / 2;
    register(segment.asSlice(0, half), 0);
    MemorySegment behind = segment.asSlice(half).fill((byte) 4);
    long memory = driver.memory().memAlloc(0, half);
    driver.transfers().memcpyHtoDAsync(0, memory, behind, 0);
    driver.streams().streamSynchronize(0, 0);
    behind.fill((byte) 5);
    driver.transfers().memcpyDtoHAsync(0, behind, memory, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(behind.toArray(ValueLayout.JAVA_BYTE)).containsOnly(4);
  }

  /** What is registered where, beside a list: no byte twice, and views change nothing of that. */
  @Test
  void memory_isRegisteredOnce_andKnownFromItsStartToItsEnd() {
    Random random = new Random(9);
    MemorySegment all = Arena.ofAuto().allocate(64, 64);
    TreeMap<Integer, Integer> ranges = new TreeMap<>();
    for (int step = 0; step < 500; step++) {
      int from = random.nextInt(64);
      int to = from + 1 + random.nextInt(Math.min(16, 64 - from));
      Map.Entry<Integer, Integer> at = ranges.floorEntry(from);
      boolean isKnown = at != null && from < at.getValue();
      Map.Entry<Integer, Integer> before = ranges.lowerEntry(to);
      boolean isFree = before == null || before.getValue() <= from;
      long address = all.address() + from;
      if (isKnown && random.nextBoolean()) {
        int bytes = random.nextInt(at.getValue() - from + 1);
        MemorySegment view = driver.memory().hostView(0, address, bytes, Arena.ofAuto());
        assertThat(view.address()).isEqualTo(address);
        assertThat(view.byteSize()).isEqualTo(bytes);
      } else if (isFree) {
        register(all.asSlice(from, to - from), 0);
        ranges.put(from, to);
      } else if (ranges.remove(from) != null) {
        unregister(address);
      } else {
        assertFails(
            CudaStatus.HOST_MEMORY_ALREADY_REGISTERED,
            "in part",
            () -> register(all.asSlice(from, to - from), 0));
      }
      assertKnown(all.address(), ranges);
    }
  }

  private void assertKnown(long start, TreeMap<Integer, Integer> ranges) {
    assertThat(driver.liveAllocations()).isEqualTo(ranges.size());
    ranges.forEach((from, to) -> {
      for (int offset : new int[] {from, to - 1}) {
        assertThat(driver.memory().pointerGetAttribute(0, RANGE_START, start + offset))
            .isEqualTo(start + from);
      }
      driver.transfers().memsetD8Async(0, start + from, (byte) 1, to - from, 0);
    });
  }

  /** The view is there still, but no memory of the driver: it may be registered by itself. */
  @Test
  @SuppressWarnings("restricted") // the address is what a driver gave
  void viewThatOutlivesItsMemory_isMemoryOfTheProgram() {
    long memory = driver.memory().memHostAlloc(0, 8192, 0).address();
    try (Arena arena = Arena.ofShared()) {
      long view = driver.memory().hostView(0, memory, 8192, arena).address();
      MemorySegment there = MemorySegment.ofAddress(view).reinterpret(8192);
      assertFails(CudaStatus.HOST_MEMORY_ALREADY_REGISTERED, "in part", () -> register(there, 0));
      driver.memory().memFreeHost(0, memory);
      register(there.asSlice(4096), 0);
      assertFails(
          INVALID, "live memory", () -> driver.memory().pointerGetAttribute(0, RANGE_START, view));
      register(there.asSlice(0, 4096), 0);
      assertThat(driver.memory().pointerGetAttribute(0, RANGE_START, view)).isEqualTo(view);
      unregister(view);
      unregister(view + 4096);
    }
  }
}
