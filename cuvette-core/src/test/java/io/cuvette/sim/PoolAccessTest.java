package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which devices may touch the memory of a pool. */
class PoolAccessTest extends SimTestBase {
  private final SimulatedDriver three =
      SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(3).withPeers("0-1"));
  private final long pool = create(three, 1, 1);

  private static long create(SimulatedDriver driver, int type, int location) {
    return driver.pools().memPoolCreate(new PoolProperties(type, 0, location, 0, 0));
  }

  @org.junit.jupiter.api.AfterEach
  void closeThree() {
    three.close();
  }

  private int access(int device) {
    return three.pools().memPoolGetAccess(pool, 1, device);
  }

  private void set(int access, int... devices) {
    three.pools().memPoolSetAccess(pool, 1, devices, access);
  }

  @Test
  void peersHaveAccess_onlyIfItIsGiven_andTheOwnerAlways() {
    assertThat(access(0)).isEqualTo(3);
    assertThat(access(1)).isZero();
    set(3, 1, 0);
    assertThat(access(1)).isEqualTo(3);
    set(1, 1);
    assertThat(access(1)).isEqualTo(1);
    set(0, 1);
    assertThat(access(1)).isZero();
    assertFails(CudaStatus.INVALID_DEVICE, "access of the owner: 0", () -> set(0, 0));
    assertThat(access(0)).isEqualTo(3);
    assertThat(three.pools().memPoolGetAccess(pool, 2, 0)).as("the host").isZero();
  }

  @Test
  void places_areDevicesOrTheHost_whichHasNoMemoryOfADevice() {
    CudaStatus invalid = CudaStatus.INVALID_VALUE;
    assertFails(invalid, "location type: 9", () -> three.pools().memPoolGetAccess(pool, 9, 0));
    assertFails(
        CudaStatus.INVALID_DEVICE, "device: 3", () -> three.pools().memPoolGetAccess(pool, 1, 3));
    three.pools().memPoolSetAccess(pool, 2, new int[] {0}, 0);
    assertFails(
        invalid,
        "the host, for device memory",
        () -> three.pools().memPoolSetAccess(pool, 2, new int[] {0}, 3));
  }

  @Test
  void access_isSetForEachPlaceInOneCall_orForNone() {
    SimulatedDriver four = SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(4));
    try (four) {
      long shared = create(four, 1, 1);
      four.pools().memPoolSetAccess(shared, 1, new int[] {1, 2}, 3);
      four.pools().memPoolSetAccess(shared, 1, new int[] {2, 3, 1}, 0, 3, 1);
      assertThat(four.pools().memPoolGetAccess(shared, 1, 1)).isEqualTo(1);
      assertThat(four.pools().memPoolGetAccess(shared, 1, 2)).isZero();
      assertThat(four.pools().memPoolGetAccess(shared, 1, 3)).isEqualTo(3);
      assertFails(
          CudaStatus.INVALID_VALUE,
          "access: 2 flags for 3 places (expected: 1 or 3)",
          () -> four.pools().memPoolSetAccess(shared, 1, new int[] {1, 2, 3}, 3, 3));
      assertFails(
          CudaStatus.INVALID_DEVICE,
          "access of the owner: 0",
          () -> four.pools().memPoolSetAccess(shared, 1, new int[] {2, 0}, 3, 0));
      assertThat(four.pools().memPoolGetAccess(shared, 1, 2)).isZero();
    }
  }

  @Test
  void deviceThatCannotReach_isRefused_andNothingIsSet() {
    assertFails(
        CudaStatus.INVALID_DEVICE, "device 2 cannot reach memory of device 0", () -> set(3, 1, 2));
    assertFails(CudaStatus.INVALID_DEVICE, "device: 3", () -> set(3, 1, 3));
    assertFails(CudaStatus.INVALID_DEVICE, "device: -1", () -> access(-1));
    assertThat(access(1)).isZero();
    set(0, 1, 2);
  }

  @ParameterizedTest
  @CsvSource({"1, 2, access: 2", "1, 4, access: 4", "0, 3, location type: 0", "4, 3, location"})
  void wrongAccessOrLocation_isInvalid(int location, int access, String message) {
    assertFails(
        CudaStatus.INVALID_VALUE,
        message,
        () -> three.pools().memPoolSetAccess(pool, location, new int[] {1}, access));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void hostPool_isTheHostsAlone_untilADeviceGetsAccess_butCanBeCopied(int location) {
    long host = create(driver, 1, location);
    assertThat(driver.pools().memPoolGetAccess(host, 2, 0)).isEqualTo(3);
    assertThat(driver.pools().memPoolGetAccess(host, 1, 0)).isZero();
    long address = driver.ordered().memAllocFromPoolAsync(0, 64, host, 0);
    driver.transfers().memcpyAsync(0, driver.memory().memAlloc(0, 64), address, 64, 0);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "device 0 has access 0 to its pool (expected: 3)",
        () -> driver.transfers().memsetD8Async(0, address, (byte) 1, 64, 0));
    driver.pools().memPoolSetAccess(host, 1, new int[] {0}, 3);
    driver.pools().memPoolSetAccess(host, 1, new int[] {1}, 1);
    assertThat(driver.pools().memPoolGetAccess(host, 1, 0)).isEqualTo(3);
    driver.transfers().memsetD8Async(0, address, (byte) 1, 64, 0);
    driver.devices().ctxSynchronize(0);
    assertThat(read(address, 1)).containsExactly(1);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "device 1 has access 1 to its pool (expected: 3)",
        () -> driver.transfers().memsetD8Async(1, address, (byte) 1, 64, 0));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "access of the host: 0 (expected: 3",
        () -> driver.pools().memPoolSetAccess(host, 2, new int[] {0}, 0));
    driver.pools().memPoolSetAccess(host, 2, new int[] {0}, 3);
  }

  @Test
  void managedPool_isOpenToAll_forEver() {
    long managed = create(driver, 2, 0);
    assertThat(driver.pools().memPoolGetAccess(managed, 1, 1)).isEqualTo(3);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "managed memory",
        () -> driver.pools().memPoolSetAccess(managed, 1, new int[] {1}, 0));
  }

  @Test
  void directCopyBetweenDevices_needsAccess_andAPeerCopyNever() {
    long own = create(driver, 1, 1);
    long source = driver.ordered().memAllocFromPoolAsync(0, 64, own, 0);
    driver.transfers().memsetD8Async(0, source, (byte) 6, 64, 0);
    driver.devices().ctxSynchronize(0);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "device 1 has access 0 to its pool (expected: 3)",
        () -> driver.transfers().memsetD8Async(1, source, (byte) 6, 64, 0));
    long target = driver.memory().memAlloc(1, 64);
    String rule = "device 1 has access 0 to its pool (expected: 1)";
    assertFails(
        CudaStatus.INVALID_VALUE,
        rule,
        () -> driver.transfers().memcpyAsync(1, target, source, 64, 0));
    driver.transfers().memcpyPeerAsync(1, target, 1, source, 0, 64, 0);
    driver.devices().ctxSynchronize(1);
    assertThat(read(target, 1)).containsExactly(6);
    driver.pools().memPoolSetAccess(own, 1, new int[] {1}, 1);
    driver.transfers().memcpyAsync(1, target, source, 64, 0);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "device 1 has access 1 to its pool (expected: 3)",
        () -> driver.transfers().memcpyAsync(1, source, target, 64, 0));
    driver.pools().memPoolSetAccess(own, 1, new int[] {1}, 3);
    driver.transfers().memcpyAsync(1, source, target, 64, 0);
    driver.transfers().memcpyAsync(0, target, source, 64, 0);
    assertThat(driver.memory().pointerGetAttribute(1, 16, source)).isEqualTo(3);
  }

  /** Whatever is on the other side; plain memory of another device takes it. */
  @Test
  void copyWithTheHost_needsAccessToDeviceMemoryOfAPool() {
    long own = create(driver, 1, 1);
    long memory = driver.ordered().memAllocFromPoolAsync(0, 64, own, 0);
    long plain = driver.memory().memAlloc(0, 64);
    driver.devices().ctxSynchronize(0);
    MemorySegment pinned = driver.memory().memHostAlloc(1, 64, 1);
    MemorySegment managed = driver.memory().memAllocManaged(1, 64, 1);
    MemorySegment pageable = Arena.ofAuto().allocate(64);
    String written = "device 1 has access 0 to its pool (expected: 3)";
    String read = "device 1 has access 0 to its pool (expected: 1)";
    for (MemorySegment host : List.of(pinned, managed, pageable)) {
      Runnable in = () -> driver.transfers().memcpyHtoDAsync(1, memory, host, 0);
      Runnable out = () -> driver.transfers().memcpyDtoHAsync(1, host, memory, 0);
      assertFails(CudaStatus.INVALID_VALUE, written, in::run);
      assertFails(CudaStatus.INVALID_VALUE, read, out::run);
      driver.transfers().memcpyHtoDAsync(0, memory, host, 0);
      driver.transfers().memcpyDtoHAsync(0, host, memory, 0);
      driver.transfers().memcpyHtoDAsync(1, plain, host, 0);
      driver.devices().ctxSynchronize(0);
      driver.devices().ctxSynchronize(1);
    }
    for (MemorySegment host : List.of(pinned, managed)) {
      long address = host.address();
      assertFails(
          CudaStatus.INVALID_VALUE,
          written,
          () -> driver.transfers().memcpyAsync(1, memory, address, 64, 0));
      assertFails(
          CudaStatus.INVALID_VALUE,
          read,
          () -> driver.transfers().memcpyAsync(1, address, memory, 64, 0));
    }
    driver.pools().memPoolSetAccess(own, 1, new int[] {1}, 3);
    driver.transfers().memcpyAsync(1, memory, pinned.address(), 64, 0);
    driver.transfers().memcpyHtoDAsync(1, memory, pageable, 0);
    driver.transfers().memcpyDtoHAsync(1, pageable, memory, 0);
  }

  /** Copies of plain memory find another way; as seen on two H200. */
  @Test
  void plainMemoryOfAnotherDevice_isCopied_butFilledWithPeerAccessAlone() {
    long there = driver.memory().memAlloc(1, KIB);
    long here = driver.memory().memAlloc(0, KIB);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(
        status,
        "no peer access",
        () -> driver.transfers().memsetD8Async(0, there, (byte) 1, KIB, 0));
    driver.transfers().memsetD8Async(1, there, (byte) 2, KIB, 0);
    driver.streams().streamSynchronize(1, 0);
    driver.transfers().memcpyAsync(0, here, there, KIB, 0);
    assertThat(read(here, 1)).containsExactly(2);
    driver.devices().ctxEnablePeerAccess(0, 1);
    driver.transfers().memsetD8Async(0, there, (byte) 3, KIB, 0);
    assertThat(read(there, 1)).containsExactly(3);
    driver.devices().ctxDisablePeerAccess(0, 1);
    assertFails(
        status,
        "no peer access",
        () -> driver.transfers().memsetD8Async(0, there, (byte) 1, KIB, 0));
  }

  /** What is refused, and with which status; null if the access can be set. */
  private static @Nullable CudaStatus refusal(
      int type, int location, int placeType, int place, int access) {
    boolean isOnDevice = type == 1 && location == 1;
    if (access != 0 && access != 1 && access != 3) {
      return CudaStatus.INVALID_VALUE;
    } else if (placeType == 1) {
      if (place < 0 || place > 2) {
        return CudaStatus.INVALID_DEVICE;
      } else if (type == 2) {
        return access == 3 ? null : CudaStatus.INVALID_VALUE;
      }
      boolean isOwner = isOnDevice && place == 0;
      boolean isFar = isOnDevice && place == 2;
      boolean isWrong = (isOwner && access != 3) || (isFar && access != 0);
      return isWrong ? CudaStatus.INVALID_DEVICE : null;
    } else if (placeType != 2 && placeType != 3) {
      return CudaStatus.INVALID_VALUE;
    }
    return access == (isOnDevice ? 0 : 3) ? null : CudaStatus.INVALID_VALUE;
  }

  /** Of each place that there is or is not, one after the other, and of no other place. */
  @ParameterizedTest
  @CsvSource({"1, 1", "1, 2", "1, 3", "2, 0", "2, 1", "2, 2", "2, 3"})
  void accessOfOnePlace_isSetOrRefused_andThatOfOthersStays(int type, int location) {
    long one = three.pools().memPoolCreate(new PoolProperties(type, 0, location, 0, 0));
    boolean isOnDevice = type == 1 && location == 1;
    int[] all = {isOnDevice || type == 2 ? 3 : 0, type == 2 ? 3 : 0, type == 2 ? 3 : 0};
    for (int placeType = -1; placeType <= 5; placeType++) {
      for (int place = -1; place <= 3; place++) {
        for (int access : new int[] {3, 1, 0, 2, 4, -1, 7}) {
          int at = placeType;
          int[] ids = {place};
          CudaStatus status = refusal(type, location, placeType, place, access);
          if (status != null) {
            assertFails(status, "", () -> three.pools().memPoolSetAccess(one, at, ids, access));
          } else {
            three.pools().memPoolSetAccess(one, placeType, ids, access);
            if (placeType == 1) {
              all[place] = access;
            }
          }
          for (int device = 0; device < 3; device++) {
            assertThat(three.pools().memPoolGetAccess(one, 1, device))
                .as("%d of %d at %d:%d", device, access, placeType, place)
                .isEqualTo(all[device]);
          }
          assertThat(three.pools().memPoolGetAccess(one, 2, 0)).isEqualTo(isOnDevice ? 0 : 3);
          assertThat(three.pools().memPoolGetAccess(one, 3, 0)).isEqualTo(isOnDevice ? 0 : 3);
        }
      }
    }
    assertFails(
        CudaStatus.INVALID_DEVICE,
        "device: 3 (expected: 0 to 2)",
        () -> three.pools().memPoolGetAccess(one, 1, 3));
  }

  private long ofGraph(boolean isOpen) {
    long graph = driver.graphs().graphCreate();
    List<Integer> peers = isOpen ? List.of(1) : List.of();
    GraphNodeParams of = new GraphNodeParams.Allocation(0, 64, peers, 0);
    long node = driver.graphs().graphAddNode(0, graph, new long[0], of).node();
    GraphNodeParams made = driver.graphs().graphNodeGetParams(node);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphLaunch(0, executable, 0);
    driver.streams().streamSynchronize(0, 0);
    return ((GraphNodeParams.Allocation) made).address();
  }

  private long pooled(boolean isOpen) {
    long own = create(driver, 1, 1);
    if (isOpen) {
      driver.pools().memPoolSetAccess(own, 1, new int[] {1}, 3);
    }
    long address = driver.ordered().memAllocFromPoolAsync(0, 64, own, 0);
    driver.streams().streamSynchronize(0, 0);
    return address;
  }

  private long mapped(boolean isOpen) {
    long address = driver.virtual().memAddressReserve(2 * MIB, 0, 0);
    long handle = driver.virtual().memCreate(2 * MIB, AllocationProperties.ofDevice(0, 0));
    driver.virtual().memMap(address, 2 * MIB, 0, handle);
    driver.virtual().memSetAccess(address, 2 * MIB, 1, new int[] {isOpen ? 1 : 0}, 3);
    return address;
  }

  /** Peer access is for plain memory alone; that of the host needs none. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void memoryOfAnotherDevice_isFilled_asItsKindSays(boolean isPeer) {
    long plain = driver.memory().memAlloc(0, 64);
    long pinned = driver.memory().memHostAlloc(0, 64, 0).address();
    long managed = driver.memory().memAllocManaged(0, 64, 1).address();
    if (isPeer) {
      driver.devices().ctxEnablePeerAccess(1, 0);
    }
    for (boolean isOpen : new boolean[] {false, true}) {
      long[] all = {plain, pinned, managed, pooled(isOpen), mapped(isOpen), ofGraph(isOpen)};
      for (long address : all) {
        boolean isOfHost = address == pinned || address == managed;
        boolean isAllowed = isOfHost || (address == plain ? isPeer : isOpen);
        if (isAllowed) {
          driver.transfers().memsetD8Async(1, address, (byte) 4, 64, 0);
          driver.streams().streamSynchronize(1, 0);
        } else {
          assertFails(
              CudaStatus.INVALID_VALUE,
              "access",
              () -> driver.transfers().memsetD8Async(1, address, (byte) 4, 64, 0));
        }
      }
    }
  }
}
