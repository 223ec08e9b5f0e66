package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Which addresses are memory, of whom, and what of host memory is in use still. */
class MemoryPlacesTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final long PAGE = 2 * MIB;
  private static final int TYPE = 2;
  private static final int ORDINAL = 9;

  @Test
  void addressThatIsNone_isRefused_whateverItsBits() {
    long known = driver.memory().memAlloc(1, 64);
    for (long owner = 0; owner < 64; owner++) {
      for (long sizeClass = 0; sizeClass < 64; sizeClass += owner < 4 ? 1 : 21) {
        long address = owner << 56 | sizeClass << 50 | 1L << 40;
        String text = "0x%x".formatted(address);
        assertFails(INVALID, text, () -> driver.memory().memFree(0, address));
        assertFails(
            INVALID, text, () -> driver.transfers().memsetD8Async(0, address, (byte) 1, 1, 0));
      }
    }
    assertFails(
        INVALID,
        "freed",
        () -> {
          driver.memory().memFree(1, known);
          driver.memory().memFree(1, known);
        });
  }

  private long handle(int locationType, int id) {
    return driver.virtual().memCreate(PAGE, new AllocationProperties(0, locationType, id));
  }

  /** Neighbours are one memory only if they are of one place. */
  @Test
  void pagesSideBySide_areEachOfItsOwnPlace() {
    var calls = driver.virtual();
    long range = calls.memAddressReserve(6 * PAGE, 0, 0);
    int[][] places = {{1, 0}, {1, 0}, {1, 1}, {MemLocationType.HOST_NUMA, 0}, {1, 0}};
    for (int i = 0; i < places.length; i++) {
      long handle = handle(places[i][0], places[i][1]);
      calls.memMap(range + i * PAGE, PAGE, 0, handle);
      calls.memRelease(handle);
      calls.memSetAccess(range + i * PAGE, PAGE, MemLocationType.DEVICE, new int[] {0, 1}, 3);
    }
    assertThat(driver.report()).contains("1 reserved ranges of addresses, 5 mappings");
    for (int i = 0; i < places.length; i++) {
      long address = range + i * PAGE + 8;
      boolean onDevice = places[i][0] == 1;
      assertThat(driver.memory().pointerGetAttribute(0, TYPE, address))
          .as("page %d", i)
          .isEqualTo(onDevice ? 2 : 1);
      if (onDevice) {
        assertThat(driver.memory().pointerGetAttribute(0, ORDINAL, address))
            .isEqualTo(places[i][1]);
      }
      driver.transfers().memsetD8Async(0, address, (byte) i, 8, 0);
    }
    for (int i = 0; i < places.length; i++) {
      assertThat(read(range + i * PAGE + 8, 8)).containsOnly(i);
    }
    calls.memUnmap(range + PAGE, PAGE);
    assertThat(driver.report()).contains("4 mappings");
  }

  @Test
  void wantedAddresses_areGivenIfTheyAreFree_elseOthers() {
    var calls = driver.virtual();
    Set<Long> given = new HashSet<>();
    long first = calls.memAddressReserve(4 * PAGE, 0, 0);
    given.add(first);
    long wanted = first + 64 * PAGE;
    assertThat(calls.memAddressReserve(2 * PAGE, 0, wanted)).isEqualTo(wanted);
    given.add(wanted);
    for (long taken : new long[] {first, first + 2 * PAGE, wanted - PAGE, wanted + PAGE}) {
      long other = calls.memAddressReserve(2 * PAGE, 0, taken);
      assertThat(other).isNotEqualTo(taken);
      assertThat(given.add(other)).isTrue();
      assertThat(other + 2 * PAGE <= first || other >= first + 4 * PAGE).isTrue();
      assertThat(other + 2 * PAGE <= wanted || other >= wanted + 2 * PAGE).isTrue();
    }
    long host = calls.memAddressReserve(PAGE, 0, 0x7000_0000_0000L);
    assertThat(host >>> 56).as("virtual, all the same").isEqualTo(first >>> 56);
    calls.memAddressFree(wanted, 2 * PAGE);
    assertThat(calls.memAddressReserve(PAGE, 0, wanted)).isEqualTo(wanted);
  }

  /** A view holds the bytes of the file, even when another one was made after it. */
  @Test
  void memoryOfAnOpenView_isNobodyElses() throws IOException {
    MemorySegment memory = driver.memory().memHostAlloc(0, PAGE, 0);
    long address = memory.address();
    try (Arena first = Arena.ofShared()) {
      MemorySegment view = driver.memory().hostView(0, address, PAGE, first);
      view.fill((byte) 1);
      try (Arena second = Arena.ofShared()) {
        driver.memory().hostView(0, address + 4096, 4096, second).fill((byte) 2);
      }
      driver.memory().memFreeHost(0, address);
      for (int i = 0; i < 3; i++) { // each looks whether the view is there still
        MemorySegment other = driver.memory().memHostAlloc(0, PAGE, 0);
        other.fill((byte) 3);
        driver.memory().memFreeHost(0, other.address());
      }
      assertThat(view.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
      assertThat(view.get(ValueLayout.JAVA_BYTE, 5000)).isEqualTo((byte) 2);
      assertThat(driver.machine.hostMemory.fileBytes()).isGreaterThanOrEqualTo(PAGE);
    }
    MemorySegment last = driver.memory().memHostAlloc(0, 8, 0);
    driver.memory().memFreeHost(0, last.address());
    assertThat(driver.machine.hostMemory.fileBytes()).as("nobody has any").isZero();
  }

  @Test
  void freedMemoryOfAView_goesWithTheNextCallThatRegisters() throws IOException {
    MemorySegment memory = driver.memory().memHostAlloc(0, 8, 0);
    try (Arena arena = Arena.ofShared()) {
      driver.memory().hostView(0, memory.address(), 8, arena).fill((byte) 1);
      driver.memory().memFreeHost(0, memory.address());
      assertThat(driver.machine.hostMemory.fileBytes()).isPositive();
    }
    try (Arena arena = Arena.ofShared()) {
      MemorySegment own = arena.allocate(64);
      driver.memory().memHostRegister(0, own, 0);
      driver.memory().memHostUnregister(0, own.address());
    }
    assertThat(driver.machine.hostMemory.fileBytes()).isZero();
  }

  @Test
  void viewsOfMemory_areNoMemoryOfTheirOwn() {
    MemorySegment memory = driver.memory().memHostAlloc(0, 4096, 0);
    long address = memory.address();
    try (Arena arena = Arena.ofShared()) {
      for (long bytes : new long[] {4096, 16, 0}) {
        driver.memory().hostView(0, address, bytes, arena);
        driver.memory().hostView(0, address + 16, bytes == 0 ? 0 : 16, arena);
      }
      assertThat(driver.liveAllocations()).isEqualTo(1);
      assertThat(driver.report().lines().filter(line -> line.contains("PINNED"))).hasSize(1);
      driver.memory().memFreeHost(0, address);
      assertThat(driver.report()).isEmpty();
    }
  }

  @Test
  void fillOfManagedMemory_bringsItsPages_andThatOfOtherMemoryNone() {
    long free = driver.devices().memGetInfo(0).freeBytes();
    MemorySegment managed = driver.memory().memAllocManaged(0, 2 * PAGE, 1);
    MemorySegment pinned = driver.memory().memHostAlloc(0, 2 * PAGE, 0);
    for (long address : List.of(pinned.address(), managed.address())) {
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free);
      driver.transfers().memsetD8Async(0, address, (byte) 1, 2 * PAGE, 0);
      driver.streams().streamSynchronize(0, 0);
    }
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free - 2 * PAGE);
    driver.memory().memFree(0, managed.address());
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free);
  }

  /** Whatever the source is. */
  @Test
  void memoryRegisteredToBeRead_isNoTarget() {
    for (int source = 0; source < 3; source++) {
      try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
          Arena arena = Arena.ofShared()) {
        MemorySegment memory = arena.allocate(64).fill((byte) 6);
        other.memory().memHostRegister(0, memory.asReadOnly(), 8);
        long from =
            switch (source) {
              case 0 -> other.memory().memAlloc(0, 64);
              case 1 -> other.memory().memHostAlloc(0, 64, 0).address();
              default -> mapped(other);
            };
        other.transfers().memcpyAsync(0, memory.address(), from, 64, 0);
        assertFails(
            CudaStatus.ILLEGAL_ADDRESS,
            "registered as read-only",
            () -> other.streams().streamSynchronize(0, 0));
        assertThat(memory.toArray(ValueLayout.JAVA_BYTE)).containsOnly(6);
      }
    }
  }

  private static long mapped(SimulatedDriver driver) {
    AllocationProperties first = AllocationProperties.ofDevice(0, MemHandleType.NONE);
    long range = driver.virtual().memAddressReserve(PAGE, 0, 0);
    driver.virtual().memMap(range, PAGE, 0, driver.virtual().memCreate(PAGE, first));
    driver.virtual().memSetAccess(range, PAGE, MemLocationType.DEVICE, new int[] {0}, 3);
    return range;
  }

  /** Each pair of kinds, there and back. */
  @Test
  void bytes_areTheSameAfterACopyBetweenAnyTwoKinds() {
    long[] all = {
      driver.memory().memAlloc(0, 64),
      driver.memory().memAlloc(1, 64),
      mapped(driver),
      mapped(driver),
      driver.memory().memHostAlloc(0, 64, 0).address(),
      driver.memory().memAllocManaged(0, 64, 1).address()
    };
    driver.devices().ctxEnablePeerAccess(0, 1);
    int value = 1;
    for (long from : all) {
      for (long to : all) {
        if (from != to) {
          driver.transfers().memsetD8Async(0, from + 5, (byte) value, 40, 0);
          driver.transfers().memsetD8Async(0, to, (byte) 99, 64, 0);
          driver.transfers().memcpyAsync(0, to + 9, from + 6, 30, 0);
          byte[] seen = read(to, 64);
          for (int i = 0; i < 64; i++) {
            assertThat(seen[i]).isEqualTo((byte) (i >= 9 && i < 39 ? value : 99));
          }
          value++;
        }
      }
    }
  }

  @Test
  void endOfMemory_isAPlaceForNoBytes_andNotForOne() {
    long from = driver.memory().memAlloc(0, 64);
    for (long start :
        new long[] {
          driver.memory().memAlloc(0, 64),
          driver.memory().memHostAlloc(0, 64, 0).address(),
          driver.memory().memAllocManaged(0, 64, 1).address()
        }) {
      long end = start + 64;
      driver.transfers().memcpyAsync(0, end, from, 0, 0);
      driver.transfers().memcpyAsync(0, from, end, 0, 0);
      driver.transfers().memsetD8Async(0, end, (byte) 1, 0, 0);
      assertFails(INVALID, "", () -> driver.transfers().memcpyAsync(0, end, from, 1, 0));
      assertFails(INVALID, "", () -> driver.transfers().memcpyAsync(0, end - 1, from, 2, 0));
      assertFails(INVALID, "", () -> driver.transfers().memsetD8Async(0, end, (byte) 1, 1, 0));
    }
    driver.devices().ctxSynchronize(0);
  }
}
