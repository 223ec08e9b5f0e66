package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that is mapped into reserved addresses: where it is, who may use it, how it counts. */
class VirtualMemoryTest extends SimTestBase {
  private static final long PAGE = 2 * MIB;
  private static final AllocationProperties ON_FIRST =
      AllocationProperties.ofDevice(0, MemHandleType.NONE);
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;

  private final VirtualCalls virtual = driver.virtual();
  private final long range = virtual.memAddressReserve(4 * PAGE, 0, 0);

  private long map(int page) {
    long handle = virtual.memCreate(PAGE, ON_FIRST);
    virtual.memMap(range + page * PAGE, PAGE, 0, handle);
    access(page, 0, MemAccessFlags.READ_WRITE);
    return handle;
  }

  private void access(int page, int device, int access) {
    virtual.memSetAccess(
        range + page * PAGE, PAGE, MemLocationType.DEVICE, new int[] {device}, access);
  }

  private int accessAt(long address) {
    return virtual.memGetAccess(address, MemLocationType.DEVICE, 0);
  }

  private void fill(long address, long bytes) {
    driver.transfers().memsetD8Async(0, address, (byte) 5, bytes, 0);
  }

  private long freeBytes() {
    return driver.devices().memGetInfo(0).freeBytes();
  }

  @Test
  void mapping_goesFromItsStartToItsEnd() {
    map(0);
    map(2);
    assertThat(accessAt(range)).isEqualTo(MemAccessFlags.READ_WRITE);
    assertThat(accessAt(range + PAGE - 1)).isEqualTo(MemAccessFlags.READ_WRITE);
    assertFails(INVALID, "expected: inside", () -> accessAt(range + PAGE));
    assertFails(INVALID, "nothing is mapped there", () -> accessAt(range + 2 * PAGE - 1));
    assertFails(INVALID, "expected: inside", () -> accessAt(range + 3 * PAGE));
    fill(range, PAGE);
    assertThat(read(range + PAGE - 1, 1)).containsExactly(5);
    assertFails(INVALID, "2097153 bytes from offset 0", () -> fill(range, PAGE + 1));
    assertFails(INVALID, "1 bytes from offset 2097152", () -> fill(range + PAGE, 1));
    assertFails(INVALID, "nothing is mapped there", () -> fill(range + PAGE + 1, 1));
    assertFails(INVALID, "an address of live memory", () -> fill(range - PAGE, 1));
    map(1);
    fill(range + 1, 3 * PAGE - 1);
    assertThat(read(range + 3 * PAGE - 1, 1)).containsExactly(5);
  }

  @Test
  void memory_countsAsUsed_untilItIsNeitherHeldNorMapped() {
    long free = freeBytes();
    long held = map(0);
    long mapped = map(1);
    assertThat(freeBytes()).isEqualTo(free - 2 * PAGE);
    virtual.memRelease(mapped);
    virtual.memUnmap(range, PAGE);
    assertThat(freeBytes()).isEqualTo(free - 2 * PAGE);
    virtual.memRelease(held);
    assertThat(freeBytes()).isEqualTo(free - PAGE);
    virtual.memUnmap(range + PAGE, PAGE);
    assertThat(freeBytes()).isEqualTo(free);
    assertThat(driver.report()).contains("1 reserved ranges of addresses, 0 mappings");
    virtual.memAddressFree(range, 4 * PAGE);
    assertThat(driver.report()).isEmpty();
  }

  @Test
  void wrongRanges_areRefused() {
    String multiple = "expected: a multiple of 2097152";
    assertFails(INVALID, multiple, () -> virtual.memAddressReserve(PAGE + 1, 0, 0));
    assertFails(INVALID, multiple, () -> virtual.memAddressReserve(0, 0, 0));
    assertFails(INVALID, "alignment: 3", () -> virtual.memAddressReserve(PAGE, 3, 0));
    assertFails(INVALID, "address: 0x1", () -> virtual.memAddressReserve(PAGE, 0, 1));
    assertFails(INVALID, multiple, () -> virtual.memCreate(PAGE / 2, ON_FIRST));
    long handle = map(0);
    String all = "bytes: %d (expected: %d, all of the memory)".formatted(2 * PAGE, PAGE);
    assertFails(INVALID, all, () -> virtual.memMap(range + PAGE, 2 * PAGE, 0, handle));
    assertFails(INVALID, multiple, () -> virtual.memMap(range + PAGE + 1, PAGE, 0, handle));
    assertFails(INVALID, "offset: 1", () -> virtual.memMap(range + PAGE, PAGE, 1, handle));
    assertFails(INVALID, "mapped already", () -> virtual.memMap(range, PAGE, 0, handle));
    String inOne = "in one reserved range";
    assertFails(INVALID, inOne, () -> virtual.memMap(range + 4 * PAGE, PAGE, 0, handle));
    assertFails(INVALID, inOne, () -> virtual.memMap(range - PAGE, PAGE, 0, handle));
    virtual.memMap(range + 3 * PAGE, PAGE, 0, handle);
    String whole = "whole mappings without a gap";
    assertFails(INVALID, whole, () -> virtual.memUnmap(range, PAGE / 2));
    assertFails(INVALID, whole, () -> virtual.memUnmap(range + 1, PAGE));
    assertFails(INVALID, whole, () -> virtual.memUnmap(range, 4 * PAGE));
    assertFails(INVALID, whole, () -> virtual.memUnmap(range + PAGE, PAGE));
    String exactly = "exactly one reserved range";
    assertFails(INVALID, exactly, () -> virtual.memAddressFree(range, PAGE));
    assertFails(INVALID, exactly, () -> virtual.memAddressFree(range + PAGE, 3 * PAGE));
    assertFails(INVALID, "2 mappings", () -> virtual.memAddressFree(range, 4 * PAGE));
  }

  @Test
  void eachDevice_hasItsOwnAccess_andTheHostNone() {
    map(0);
    assertThat(virtual.memGetAccess(range, MemLocationType.DEVICE, 1)).isZero();
    assertThat(accessAt(driver.memory().memAlloc(0, KIB))).as("never mapped").isZero();
    assertFails(INVALID, "address", () -> accessAt(range + PAGE));
    assertFails(INVALID, "device 1", () -> fillBySecond(range));
    access(0, 1, MemAccessFlags.READ);
    assertFails(INVALID, "device 1", () -> fillBySecond(range));
    access(0, 1, MemAccessFlags.READ_WRITE);
    fillBySecond(range);
    access(0, 0, MemAccessFlags.NONE);
    assertFails(INVALID, "device 0", () -> fill(range, 1));
    int[] host = {0};
    assertFails(
        CudaStatus.NOT_SUPPORTED,
        "the host cannot reach memory of device 0",
        () ->
            virtual.memSetAccess(
                range, PAGE, MemLocationType.HOST, host, MemAccessFlags.READ_WRITE));
    virtual.memSetAccess(range, PAGE, MemLocationType.HOST, host, MemAccessFlags.NONE);
    assertFails(INVALID, "access: 2", () -> access(0, 0, 2));
  }

  @Test
  void deviceThatIsNoPeer_isNamed() {
    try (SimulatedDriver apart =
        SimulatedDriver.open(SimulatedOptions.parse("devices=3,memory=64MiB,peers=0-1"))) {
      VirtualCalls calls = apart.virtual();
      long far = calls.memAddressReserve(PAGE, 0, 0);
      calls.memMap(far, PAGE, 0, calls.memCreate(PAGE, AllocationProperties.ofDevice(0, 0)));
      calls.memSetAccess(far, PAGE, 1, new int[] {0, 1}, MemAccessFlags.READ_WRITE);
      for (int access : new int[] {MemAccessFlags.READ, MemAccessFlags.READ_WRITE}) {
        assertFails(
            CudaStatus.INVALID_DEVICE,
            "device 2 cannot reach memory of device 0",
            () -> calls.memSetAccess(far, PAGE, 1, new int[] {2}, access));
      }
      calls.memSetAccess(far, PAGE, 1, new int[] {2}, MemAccessFlags.NONE);
    }
  }

  @Test
  void deviceWithoutVirtualMemory_refusesAllOfIt() {
    try (SimulatedDriver without =
        SimulatedDriver.open(SimulatedOptions.parse("virtualMemory=false"))) {
      String none = "the devices have no virtual memory";
      CudaStatus status = CudaStatus.NOT_SUPPORTED;
      VirtualCalls calls = without.virtual();
      assertFails(status, none, () -> calls.memGetAllocationGranularity(ON_FIRST, 0));
      assertFails(status, none, () -> calls.memAddressReserve(PAGE, 0, 0));
      assertFails(status, none, () -> calls.memCreate(PAGE, ON_FIRST));
      assertFails(status, none, () -> calls.memGetAllocationPropertiesFromHandle(NO_HANDLE));
      assertFails(status, none, () -> calls.memUnmap(range, PAGE));
    }
  }

  @Test
  void placesAndHandles_areCheckedWhenMemoryIsMade_notWhenItIsAskedAbout() {
    AllocationProperties fabric = AllocationProperties.ofDevice(0, 8);
    AllocationProperties windows = AllocationProperties.ofDevice(0, 2);
    AllocationProperties nowhere = new AllocationProperties(0, 9, 0);
    AllocationProperties noNode = new AllocationProperties(0, MemLocationType.HOST_NUMA, 1);
    AllocationProperties below = new AllocationProperties(0, MemLocationType.HOST_NUMA, -1);
    AllocationProperties noDevice = AllocationProperties.ofDevice(2, 0);
    for (AllocationProperties each :
        new AllocationProperties[] {fabric, windows, nowhere, noNode, below, noDevice}) {
      assertThat(virtual.memGetAllocationGranularity(each, 1)).isEqualTo(PAGE);
    }
    CudaStatus notPermitted = CudaStatus.NOT_PERMITTED;
    assertFails(notPermitted, "handle types: 8", () -> virtual.memCreate(PAGE, fabric));
    assertFails(INVALID, "handle types: 2 of device", () -> virtual.memCreate(PAGE, windows));
    assertFails(INVALID, "location type: 9", () -> virtual.memCreate(PAGE, nowhere));
    assertFails(INVALID, "NUMA node: 1 (expected: 0 to 0", () -> virtual.memCreate(PAGE, noNode));
    assertFails(INVALID, "NUMA node: -1 (expected: 0 to 0", () -> virtual.memCreate(PAGE, below));
    assertFails(CudaStatus.INVALID_DEVICE, "2", () -> virtual.memCreate(PAGE, noDevice));
    String option = "option: 2 (expected: 0 or 1)";
    assertFails(INVALID, option, () -> virtual.memGetAllocationGranularity(ON_FIRST, 2));
    assertFails(INVALID, "option: -1", () -> virtual.memGetAllocationGranularity(ON_FIRST, -1));
  }

  @Test
  void memoryOfTheHost_isNotThatOfADevice() {
    long free = freeBytes();
    AllocationProperties host = new AllocationProperties(0, MemLocationType.HOST_NUMA, 0);
    long handle = virtual.memCreate(PAGE, host);
    assertThat(virtual.memGetAllocationPropertiesFromHandle(handle)).isEqualTo(host);
    virtual.memMap(range, PAGE, 0, handle);
    map(1);
    assertThat(freeBytes()).isEqualTo(free - PAGE);
    int[] one = {0};
    virtual.memSetAccess(range, PAGE, MemLocationType.HOST, one, MemAccessFlags.READ);
    assertThat(virtual.memGetAccess(range, MemLocationType.HOST, 0)).isEqualTo(MemAccessFlags.READ);
    assertThat(accessAt(range)).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, 2, range)).isEqualTo(1);
    assertThat(driver.memory().pointerGetAttribute(0, 2, range + PAGE)).isEqualTo(2);
    assertThat(driver.memory().pointerGetAttribute(0, 15, range + PAGE)).isZero();
    assertThat(driver.memory().pointerGetAttribute(1, 16, range + PAGE)).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, 16, range + PAGE)).isEqualTo(3);
    assertThat(driver.memory().pointerGetAttribute(0, 21, range + PAGE)).isZero();
  }

  @Test
  void flagsOfAccess_areOneOrOneForEachPlace() {
    map(0);
    int device = MemLocationType.DEVICE;
    String each = "1 or as many, for at least one place";
    assertFails(
        INVALID,
        "2 flags for 3 places (expected: " + each,
        () -> virtual.memSetAccess(range, PAGE, device, new int[] {0, 1, 0}, 3, 3));
    assertFails(INVALID, each, () -> virtual.memSetAccess(range, PAGE, device, new int[0], 3));
    virtual.memSetAccess(range, PAGE, device, new int[] {0, 1}, 1, 3);
    assertThat(accessAt(range)).isEqualTo(1);
    assertThat(virtual.memGetAccess(range, device, 1)).isEqualTo(3);
  }

  @Test
  void releasedHandle_isNoHandle_thoughItsMemoryIsMapped() {
    long handle = map(0);
    virtual.memRelease(handle);
    String none = "0x%x".formatted(handle);
    assertFails(INVALID, none, () -> virtual.memRelease(handle));
    assertFails(INVALID, none, () -> virtual.memGetAllocationPropertiesFromHandle(handle));
    assertThat(virtual.memRetainAllocationHandle(range)).isEqualTo(handle);
    assertThat(virtual.memGetAllocationPropertiesFromHandle(handle)).isEqualTo(ON_FIRST);
    virtual.memRelease(handle);
    fill(range, PAGE);
  }

  @Test
  void queuedWork_findsNothingWhereMemoryWasUnmapped() {
    map(0);
    CountDownLatch goOn = hold(0, 0);
    fill(range, PAGE);
    virtual.memUnmap(range, PAGE);
    goOn.countDown();
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "0x%x: unmapped before the queued operation ran".formatted(range),
        () -> driver.streams().streamSynchronize(0, 0));
  }

  private void fillBySecond(long address) {
    driver.transfers().memsetD8Async(1, address, (byte) 1, 1, 0);
  }

  /** The two calls that change the mapping wait for no work. */
  @Test
  void queuedWork_findsNoMappingThatCameLater() {
    map(0);
    CountDownLatch goOn = hold(0, 0);
    fill(range, PAGE);
    virtual.memUnmap(range, PAGE);
    map(0);
    goOn.countDown();
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "mapped anew before the queued operation ran",
        () -> driver.streams().streamSynchronize(0, 0));
  }

  /** The access is that of each page, not that of the first one of the range. */
  @Test
  void pageWithoutAccess_isRefused_whateverThePageBeforeHas() {
    map(0);
    map(1);
    access(1, 0, MemAccessFlags.NONE);
    fill(range, PAGE);
    assertFails(INVALID, "device 0 has access 0", () -> fill(range + PAGE, 1));
    assertFails(INVALID, "device 0 has access 0", () -> fill(range, PAGE + 1));
    driver.streams().streamSynchronize(0, 0);
  }

  @Test
  void report_countsTheMappings() {
    map(0);
    map(2);
    assertThat(driver.report()).contains("1 reserved ranges of addresses, 2 mappings");
  }

  /** The copy of a graph may be changed to memory of the same place, plain or mapped. */
  @Test
  void copyOfAGraph_isChangedToMappedMemoryOfItsPlaceAlone() {
    map(0);
    AllocationProperties host = new AllocationProperties(0, MemLocationType.HOST_NUMA, 0);
    virtual.memMap(range + PAGE, PAGE, 0, virtual.memCreate(PAGE, host));
    access(1, 0, MemAccessFlags.READ_WRITE);
    write(range, (byte) 6);
    long plain = driver.memory().memAlloc(0, 64);
    long graph = driver.graphs().graphCreate();
    GraphNodeParams.Copy first = new GraphNodeParams.Copy(plain, plain + 8, 1);
    long node = driver.graphs().graphAddNode(0, graph, new long[0], first).node();
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver
        .graphs()
        .graphExecNodeSetParams(0, executable, node, new GraphNodeParams.Copy(plain, range, 1));
    GraphNodeParams.Copy ofHost = new GraphNodeParams.Copy(plain, range + PAGE, 1);
    assertFails(
        INVALID,
        "cannot be changed",
        () -> driver.graphs().graphExecNodeSetParams(0, executable, node, ofHost));
    driver.graphs().graphLaunch(0, executable, 0);
    assertThat(read(plain, 1)).containsExactly(6);
  }

  /** Of a driver that has not run anything. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void mappedMemory_isThereForTheFirstCopy(boolean toTheDevice) {
    for (int page = 0; page < 3; page++) {
      map(page);
    }
    MemorySegment host = Arena.ofAuto().allocate(3 * PAGE);
    host.fill((byte) 7);
    if (toTheDevice) {
      driver.transfers().memcpyHtoDAsync(0, range, host, 0);
      assertThat(read(range, 1)).containsExactly(7);
      assertThat(read(range + 3 * PAGE - 1, 1)).containsExactly(7);
    } else {
      driver.transfers().memcpyDtoHAsync(0, host, range, 0);
      assertThat(host.get(ValueLayout.JAVA_BYTE, 0)).isNotEqualTo((byte) 7);
    }
  }
}
