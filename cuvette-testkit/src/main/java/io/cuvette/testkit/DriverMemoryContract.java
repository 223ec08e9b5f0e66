package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.LongStream;

/** What every driver promises about allocations. Extend it in the tests of a driver. */
public abstract class DriverMemoryContract {
  private static final int MEMORY_TYPE = 2;
  private static final int DEVICE_ORDINAL = 9;
  private static final int IS_MANAGED = 8;
  private static final int RANGE_START = 11;
  private static final int RANGE_SIZE = 12;
  private static final int DEVICE_POINTER = 3;
  private static final int HOST_POINTER = 4;
  private static final int SYNC_OPERATIONS = 6;
  private static final int BUFFER_ID = 7;
  private static final int LEGACY_IPC = 10;
  private static final int MAPPED = 13;
  private static final int HANDLE_TYPES = 14;
  private static final int ACCESS = 16;
  private static final int HOST = 1;
  private static final int DEVICE = 2;

  /** For subclasses. */
  protected DriverMemoryContract() {}

  /**
   * An allocation is aligned and counted as used.
   *
   * @param driver the driver under test
   * @param subject the device under test
   */
  @CudaTest
  public void allocation_isAligned_andCounted(CudaDriver driver, Subject subject) {
    long before = driver.devices().memGetInfo(0).freeBytes();
    long address = driver.memory().memAlloc(0, 64 << 20);
    assertThat(address % 256).isZero();
    assertThat(address).isNotZero();
    if (subject.isSimulated()) {
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before - (64 << 20));
    }
    driver.memory().memFree(0, address);
    if (subject.isSimulated()) {
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before);
    }
  }

  /**
   * Allocating 0 bytes is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void noBytes_areRefused(CudaDriver driver) {
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memAlloc(0, 0));
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memAllocManaged(0, 0, 1));
  }

  /**
   * Allocating more than the device has is OUT_OF_MEMORY.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void moreThanThereIs_isOutOfMemory(CudaDriver driver) {
    long all = driver.devices().deviceTotalMem(0);
    Refused.with(CudaStatus.OUT_OF_MEMORY, () -> driver.memory().memAlloc(0, all + 1));
    Refused.with(CudaStatus.OUT_OF_MEMORY, () -> driver.memory().memAlloc(0, 1L << 60));
  }

  /**
   * A full device is OUT_OF_MEMORY until memory is freed.
   *
   * @param driver the driver under test
   */
  @CudaTest(memory = "4MiB")
  public void fullDevice_isOutOfMemory_untilSomethingIsFreed(CudaDriver driver) {
    long first = driver.memory().memAlloc(0, 3 << 20);
    Refused.with(CudaStatus.OUT_OF_MEMORY, () -> driver.memory().memAlloc(0, 2 << 20));
    driver.memory().memFree(0, first);
    driver.memory().memFree(0, driver.memory().memAlloc(0, 2 << 20));
  }

  /**
   * Freeing an address that was never allocated is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void addressThatWasNeverAllocated_isNotFreed(CudaDriver driver) {
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memFree(0, 0x1234_5678L));
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memFreeHost(0, 0x1234_5678L));
  }

  /**
   * Freeing memory twice is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void freedMemory_isNotFreedAgain(CudaDriver driver) {
    long address = driver.memory().memAlloc(0, 4096);
    driver.memory().memFree(0, address);
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memFree(0, address));
  }

  /**
   * The host can read and write page-locked memory.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void pinnedMemory_isSeenByTheHost(CudaDriver driver) {
    for (int flags : new int[] {0, 1, 2, 3}) {
      MemorySegment memory = driver.memory().memHostAlloc(0, 10_000, flags);
      assertThat(memory.byteSize()).isEqualTo(10_000);
      memory.fill((byte) 3);
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 9_999)).isEqualTo((byte) 3);
      driver.memory().memFreeHost(0, memory.address());
    }
  }

  /**
   * The host can read and write managed memory.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void managedMemory_isSeenByTheHost(CudaDriver driver) {
    MemorySegment memory = driver.memory().memAllocManaged(0, 10_000, 1);
    assertThat(memory.byteSize()).isEqualTo(10_000);
    memory.fill((byte) 3);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 9_999)).isEqualTo((byte) 3);
    driver.memory().memFree(0, memory.address());
  }

  /**
   * Unknown flags are refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void wrongFlags_areRefused(CudaDriver driver) {
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memAllocManaged(0, 4096, 77));
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memHostAlloc(0, 4096, 0x7000));
  }

  /**
   * A host view is the memory itself and ends with its arena.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void hostView_isTheMemory_andDiesWithItsArena(CudaDriver driver) {
    MemorySegment memory = driver.memory().memHostAlloc(0, 4096, 0);
    MemorySegment dead;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment view = driver.memory().hostView(0, memory.address() + 1024, 1024, arena);
      view.set(ValueLayout.JAVA_INT, 0, 42);
      assertThat(view.byteSize()).isEqualTo(1024);
      assertThat(memory.get(ValueLayout.JAVA_INT, 1024)).isEqualTo(42);
      dead = view;
    }
    assertThatThrownBy(() -> dead.get(ValueLayout.JAVA_INT, 0))
        .isInstanceOf(IllegalStateException.class);
    driver.memory().memFreeHost(0, memory.address());
  }

  /**
   * Pointer attributes report kind, device and range.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void pointerAttributes_tellKindDeviceAndRange(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, 8192);
    MemorySegment pinned = driver.memory().memHostAlloc(0, 8192, 1);
    MemorySegment managed = driver.memory().memAllocManaged(0, 8192, 1);
    assertThat(driver.memory().pointerGetAttribute(0, MEMORY_TYPE, device + 100)).isEqualTo(DEVICE);
    assertThat(driver.memory().pointerGetAttribute(0, DEVICE_ORDINAL, device)).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, IS_MANAGED, device)).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, RANGE_START, device + 100)).isEqualTo(device);
    assertThat(driver.memory().pointerGetAttribute(0, RANGE_SIZE, device)).isEqualTo(8192);
    assertThat(driver.memory().pointerGetAttribute(0, MEMORY_TYPE, pinned.address()))
        .isEqualTo(HOST);
    assertThat(driver.memory().pointerGetAttribute(0, IS_MANAGED, pinned.address())).isZero();
    assertThat(driver.memory().pointerGetAttribute(0, IS_MANAGED, managed.address())).isEqualTo(1);
    driver.memory().memFree(0, device);
    driver.memory().memFree(0, managed.address());
    driver.memory().memFreeHost(0, pinned.address());
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.memory().pointerGetAttribute(0, MEMORY_TYPE, 0x1234));
  }

  /**
   * What only some kinds of memory have: a pointer of the host, operations that wait, other
   * processes; and questions that nobody answers.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void pointerAttributes_tellWhatAKindOfMemoryHas(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, 64);
    long pinned = driver.memory().memHostAlloc(0, 64, 0).address();
    long managed = driver.memory().memAllocManaged(0, 64, 1).address();
    for (int none : new int[] {HOST_POINTER, 22, 99}) {
      Refused.with(
          CudaStatus.INVALID_VALUE, () -> driver.memory().pointerGetAttribute(0, none, device));
    }
    assertThat(attributes(driver, HOST_POINTER, pinned + 1, managed + 2))
        .containsExactly(pinned + 1, managed + 2);
    assertThat(attributes(driver, DEVICE_POINTER, device + 3, pinned + 1, managed))
        .containsExactly(device + 3, pinned + 1, managed);
    assertThat(attributes(driver, SYNC_OPERATIONS, device, pinned, managed))
        .containsExactly(0, 0, 1);
    assertThat(attributes(driver, LEGACY_IPC, device, pinned, managed)).containsExactly(1, 0, 0);
    assertThat(attributes(driver, MAPPED, device, pinned, managed)).containsExactly(1, 1, 1);
    assertThat(attributes(driver, HANDLE_TYPES, device, pinned, managed)).containsExactly(0, 0, 0);
    assertThat(attributes(driver, ACCESS, device, pinned, managed)).containsExactly(3, 3, 3);
    long[] ids = attributes(driver, BUFFER_ID, device, device + 1, pinned, managed);
    assertThat(LongStream.of(ids).distinct().count()).isEqualTo(3);
    driver.memory().memFree(0, device);
    driver.memory().memFree(0, managed);
    driver.memory().memFreeHost(0, pinned);
  }

  private static long[] attributes(CudaDriver driver, int attribute, long... addresses) {
    return LongStream.of(addresses)
        .map(address -> driver.memory().pointerGetAttribute(0, attribute, address))
        .toArray();
  }

  /**
   * Only memory of the host is registered, and only what is registered is no longer.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryThatIsNotRegistered_isNotUnregistered(CudaDriver driver) {
    long device = driver.memory().memAlloc(0, 64);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(1 << 16, 1 << 12);
      Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memHostRegister(0, memory, 16));
      Refused.with(
          CudaStatus.HOST_MEMORY_NOT_REGISTERED,
          () -> driver.memory().memHostUnregister(0, memory.address()));
    }
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memory().memHostUnregister(0, device));
    driver.memory().memFree(0, device);
  }

  /**
   * Memory belongs to the device it was allocated on.
   *
   * @param driver the driver under test
   */
  @CudaTest(devices = 2)
  public void memory_belongsToTheDeviceItWasAskedOf(CudaDriver driver) {
    long address = driver.memory().memAlloc(1, 4096);
    assertThat(driver.memory().pointerGetAttribute(0, DEVICE_ORDINAL, address)).isEqualTo(1);
    driver.memory().memFree(1, address);
  }

  /**
   * Of memory that was never mapped the driver says that nobody has access to it as to a mapping.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void otherMemory_hasNoAccessAsMapped(CudaDriver driver) {
    long plain = driver.memory().memAlloc(0, 1);
    long managed = driver.memory().memAllocManaged(0, 1, 1).address();
    long host = driver.memory().memHostAlloc(0, 1, 0).address();
    for (long address : new long[] {plain, managed, host}) {
      assertThat(driver.virtual().memGetAccess(address, MemLocationType.DEVICE, 0))
          .isEqualTo(MemAccessFlags.NONE);
    }
    driver.memory().memFree(0, plain);
    driver.memory().memFree(0, managed);
    driver.memory().memFreeHost(0, host);
    Refused.withAny(() -> driver.virtual().memGetAccess(plain, MemLocationType.DEVICE, 0));
  }
}
