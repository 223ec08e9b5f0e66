package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.DescriptorCalls.Sameness;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemGranularity;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.driver.VirtualCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** What every driver promises about virtual memory. Extend it in the tests of a driver. */
public abstract class DriverVirtualContract {
  private static final int SUPPORTED = 102;
  private static final AllocationProperties PLAIN =
      AllocationProperties.ofDevice(0, MemHandleType.NONE);
  private static final AllocationProperties SHAREABLE =
      AllocationProperties.ofDevice(0, MemHandleType.FILE_DESCRIPTOR);
  private static final long NULL_STREAM = 0;
  private static final int HOST_POINTER = 4;
  private static final int HANDLE_TYPES = 14;
  private static final int MAPPING_SIZE = 18;
  private static final int MAPPING_BASE = 19;

  /** For subclasses. */
  protected DriverVirtualContract() {}

  private static long unit(CudaDriver driver) {
    assumeTrue(driver.devices().deviceGetAttribute(SUPPORTED, 0) == 1, "no virtual memory");
    driver.devices().memGetInfo(0); // the context counts from here on
    return driver.virtual().memGetAllocationGranularity(PLAIN, MemGranularity.MINIMUM);
  }

  private static void readWrite(CudaDriver driver, long address, long bytes) {
    driver
        .virtual()
        .memSetAccess(
            address, bytes, MemLocationType.DEVICE, new int[] {0}, MemAccessFlags.READ_WRITE);
  }

  private static byte read(CudaDriver driver, long address) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(1);
      driver.transfers().memcpyDtoHAsync(0, target, address, NULL_STREAM);
      driver.streams().streamSynchronize(0, NULL_STREAM);
      return target.get(ValueLayout.JAVA_BYTE, 0);
    }
  }

  private static void fill(CudaDriver driver, long address, int value, long bytes) {
    driver.transfers().memsetD8Async(0, address, (byte) value, bytes, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
  }

  /** A range with memory mapped at its start, which {@link #end} takes away. */
  private record Mapped(CudaDriver driver, long address, long range, long bytes, long handle) {
    static Mapped of(CudaDriver driver, AllocationProperties properties, int units) {
      long unit = unit(driver);
      VirtualCalls calls = driver.virtual();
      long address = calls.memAddressReserve(4 * unit, 0, 0);
      long handle = calls.memCreate(units * unit, properties);
      calls.memMap(address, units * unit, 0, handle);
      readWrite(driver, address, units * unit);
      return new Mapped(driver, address, 4 * unit, units * unit, handle);
    }

    void end() {
      driver.virtual().memUnmap(address, bytes);
      driver.virtual().memRelease(handle);
      driver.virtual().memAddressFree(address, range);
    }
  }

  /**
   * Granularities are powers of 2, and the recommended one is not smaller.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void granularities_arePowersOf2(CudaDriver driver) {
    long unit = unit(driver);
    long recommended =
        driver.virtual().memGetAllocationGranularity(PLAIN, MemGranularity.RECOMMENDED);
    assertThat(Long.bitCount(unit)).isEqualTo(1);
    assertThat(recommended).isGreaterThanOrEqualTo(unit);
    assertThat(recommended % unit).isZero();
  }

  /**
   * Memory next to each other is one range for fills and copies.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryMappedSideBySide_isOneRange(CudaDriver driver) {
    long unit = unit(driver);
    VirtualCalls calls = driver.virtual();
    Mapped first = Mapped.of(driver, PLAIN, 1);
    long second = calls.memCreate(unit, PLAIN);
    calls.memMap(first.address + unit, unit, 0, second);
    readWrite(driver, first.address, 2 * unit);
    fill(driver, first.address, 1, 2 * unit);
    fill(driver, first.address + unit - 8, 7, 16);
    assertThat(read(driver, first.address + unit - 9)).isEqualTo((byte) 1);
    assertThat(read(driver, first.address + unit - 1)).isEqualTo((byte) 7);
    assertThat(read(driver, first.address + unit)).isEqualTo((byte) 7);
    assertThat(read(driver, first.address + unit + 8)).isEqualTo((byte) 1);
    calls.memUnmap(first.address, 2 * unit);
    calls.memRelease(second);
    calls.memRelease(first.handle);
    calls.memAddressFree(first.address, first.range);
  }

  /**
   * Memory is one memory wherever it is mapped.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryMappedTwice_hasOneContent(CudaDriver driver) {
    Mapped mapped = Mapped.of(driver, PLAIN, 1);
    long again = mapped.address + 2 * mapped.bytes;
    driver.virtual().memMap(again, mapped.bytes, 0, mapped.handle);
    readWrite(driver, again, mapped.bytes);
    fill(driver, mapped.address, 5, mapped.bytes);
    assertThat(read(driver, again + 100)).isEqualTo((byte) 5);
    driver.virtual().memUnmap(again, mapped.bytes);
    mapped.end();
  }

  /**
   * Memory that was released stays until it is unmapped, and its content with it.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void releaseWhileMapped_keepsTheMemory(CudaDriver driver) {
    Mapped mapped = Mapped.of(driver, PLAIN, 1);
    long before = driver.devices().memGetInfo(0).freeBytes();
    fill(driver, mapped.address, 3, mapped.bytes);
    driver.virtual().memRelease(mapped.handle);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before);
    assertThat(read(driver, mapped.address)).isEqualTo((byte) 3);
    driver.virtual().memUnmap(mapped.address, mapped.bytes);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before + mapped.bytes);
    driver.virtual().memAddressFree(mapped.address, mapped.range);
  }

  /**
   * A handle of what is mapped is that it was mapped with, and has to be released once more.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void retainedHandle_isTheOneThatWasMapped(CudaDriver driver) {
    Mapped mapped = Mapped.of(driver, PLAIN, 1);
    long before = driver.devices().memGetInfo(0).freeBytes();
    long retained = driver.virtual().memRetainAllocationHandle(mapped.address + 100);
    assertThat(retained).isEqualTo(mapped.handle);
    assertThat(driver.virtual().memGetAllocationPropertiesFromHandle(retained)).isEqualTo(PLAIN);
    mapped.end();
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before);
    driver.virtual().memRelease(retained);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before + mapped.bytes);
  }

  /**
   * Memory is counted when it is created, and addresses cost none.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memory_isCountedByHandles(CudaDriver driver) {
    long unit = unit(driver);
    long before = driver.devices().memGetInfo(0).freeBytes();
    long range = driver.virtual().memAddressReserve(1024 * unit, 0, 0);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before);
    long handle = driver.virtual().memCreate(2 * unit, PLAIN);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before - 2 * unit);
    driver.virtual().memRelease(handle);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(before);
    driver.virtual().memAddressFree(range, 1024 * unit);
  }

  /**
   * An address that is wanted and free is the one that is reserved.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void wantedAddress_isReservedIfItIsFree(CudaDriver driver) {
    long unit = unit(driver);
    long range = driver.virtual().memAddressReserve(4 * unit, 0, 0);
    driver.virtual().memAddressFree(range, 4 * unit);
    assertThat(driver.virtual().memAddressReserve(4 * unit, 0, range)).isEqualTo(range);
    long other = driver.virtual().memAddressReserve(4 * unit, 0, range);
    assertThat(other).isNotEqualTo(range);
    driver.virtual().memAddressFree(range, 4 * unit);
    driver.virtual().memAddressFree(other, 4 * unit);
    long aligned = driver.virtual().memAddressReserve(4 * unit, 64 * unit, 0);
    assertThat(aligned % (64 * unit)).isZero();
    driver.virtual().memAddressFree(aligned, 4 * unit);
  }

  /**
   * Sizes and addresses that are no multiples, and more than there is, are refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void wrongSizes_areRefused(CudaDriver driver) {
    long unit = unit(driver);
    VirtualCalls calls = driver.virtual();
    Refused.with(CudaStatus.INVALID_VALUE, () -> calls.memCreate(0, PLAIN));
    Refused.with(CudaStatus.INVALID_VALUE, () -> calls.memCreate(unit + 1, PLAIN));
    Refused.with(CudaStatus.OUT_OF_MEMORY, () -> calls.memCreate(1L << 45, PLAIN));
    Refused.with(CudaStatus.INVALID_VALUE, () -> calls.memAddressReserve(0, 0, 0));
    Refused.with(CudaStatus.INVALID_VALUE, () -> calls.memAddressReserve(unit, 3, 0));
    Refused.with(CudaStatus.OUT_OF_MEMORY, () -> calls.memAddressReserve(1L << 60, 0, 0));
  }

  /**
   * A mapping in part, over another, from an offset or outside of a range is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void wrongMappings_areRefused_andChangeNothing(CudaDriver driver) {
    Mapped mapped = Mapped.of(driver, PLAIN, 2);
    long unit = mapped.bytes / 2;
    VirtualCalls calls = driver.virtual();
    fill(driver, mapped.address, 9, mapped.bytes);
    long other = calls.memCreate(unit, PLAIN);
    refused(() -> calls.memMap(mapped.address + unit, unit, 0, other));
    refused(() -> calls.memMap(mapped.address + 2 * unit, unit, unit, mapped.handle));
    refused(() -> calls.memMap(mapped.address + 2 * unit + 4096, unit, 0, other));
    refused(() -> calls.memMap(mapped.address + 2 * unit, 2 * unit, 0, other));
    refused(() -> calls.memUnmap(mapped.address, unit));
    refused(() -> calls.memUnmap(mapped.address + unit, unit));
    refused(() -> calls.memAddressFree(mapped.address, unit));
    refused(() -> calls.memAddressFree(mapped.address + unit, mapped.range - unit));
    refused(() -> calls.memRetainAllocationHandle(mapped.address + 2 * unit));
    refused(() -> readWrite(driver, mapped.address, 3 * unit));
    assertThat(read(driver, mapped.address + mapped.bytes - 1)).isEqualTo((byte) 9);
    calls.memRelease(other);
    mapped.end();
  }

  /** Drivers differ in the status. */
  private static void refused(Runnable call) {
    assertThatThrownBy(call::run).isInstanceOf(CudaException.class);
  }

  /**
   * Mapped memory cannot be touched before access to it was set.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void mappedMemory_hasNoAccessAtFirst(CudaDriver driver) {
    long unit = unit(driver);
    VirtualCalls calls = driver.virtual();
    long address = calls.memAddressReserve(unit, 0, 0);
    long handle = calls.memCreate(unit, PLAIN);
    calls.memMap(address, unit, 0, handle);
    assertThat(calls.memGetAccess(address, MemLocationType.DEVICE, 0))
        .isEqualTo(MemAccessFlags.NONE);
    refused(() -> fill(driver, address, 1, unit));
    readWrite(driver, address, unit);
    assertThat(calls.memGetAccess(address, MemLocationType.DEVICE, 0))
        .isEqualTo(MemAccessFlags.READ_WRITE);
    fill(driver, address, 1, unit);
    calls.memUnmap(address, unit);
    refused(() -> fill(driver, address, 1, unit));
    calls.memRelease(handle);
    calls.memAddressFree(address, unit);
  }

  /**
   * The driver says of mapped memory that it is memory of the device, and not for legacy IPC.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void mappedMemory_isToldByItsAddress(CudaDriver driver) {
    Mapped mapped = Mapped.of(driver, PLAIN, 1);
    assertThat(driver.memory().pointerGetAttribute(0, PointerAttribute.MEMORY_TYPE, mapped.address))
        .isEqualTo(2);
    assertThat(
            driver.memory().pointerGetAttribute(0, PointerAttribute.DEVICE_ORDINAL, mapped.address))
        .isZero();
    assertThat(
            driver
                .memory()
                .pointerGetAttribute(0, PointerAttribute.IS_LEGACY_IPC_CAPABLE, mapped.address))
        .isZero();
    refused(() -> driver.sharing().ipcGetMemHandle(0, mapped.address));
    refused(() -> driver.memory().memFree(0, mapped.address));
    mapped.end();
  }

  /**
   * A range of addresses is what was reserved, a mapping what was mapped; where nothing is mapped
   * nothing is told.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void rangeOfMappedMemory_isWhatWasReserved(CudaDriver driver) {
    VirtualCalls calls = driver.virtual();
    Mapped mapped = Mapped.of(driver, SHAREABLE, 1);
    long next = mapped.address + mapped.bytes;
    long second = calls.memCreate(mapped.bytes, PLAIN);
    calls.memMap(next, mapped.bytes, 0, second);
    readWrite(driver, next, mapped.bytes);
    assertThat(asked(driver, PointerAttribute.RANGE_START, next + 5)).isEqualTo(mapped.address);
    assertThat(asked(driver, PointerAttribute.RANGE_SIZE, next + 5)).isEqualTo(mapped.range);
    assertThat(asked(driver, MAPPING_BASE, next + 5)).isEqualTo(next);
    assertThat(asked(driver, MAPPING_SIZE, next + 5)).isEqualTo(mapped.bytes);
    assertThat(asked(driver, HANDLE_TYPES, next)).isZero();
    assertThat(asked(driver, HANDLE_TYPES, mapped.address))
        .isEqualTo(MemHandleType.FILE_DESCRIPTOR);
    for (int each : new int[] {2, 9, 11, 12, 13, 14, MAPPING_SIZE, MAPPING_BASE}) {
      invalid(() -> asked(driver, each, next + mapped.bytes));
    }
    calls.memUnmap(next, mapped.bytes);
    calls.memRelease(second);
    mapped.end();
  }

  private static long asked(CudaDriver driver, int attribute, long address) {
    return driver.memory().pointerGetAttribute(0, attribute, address);
  }

  private static void invalid(Runnable call) {
    Refused.with(CudaStatus.INVALID_VALUE, call);
  }

  /**
   * Memory of the host is mapped too, and told as such.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void mappedMemoryOfTheHost_isOfTheHost(CudaDriver driver) {
    long unit = unit(driver);
    VirtualCalls calls = driver.virtual();
    long address = calls.memAddressReserve(unit, 0, 0);
    long handle = calls.memCreate(unit, new AllocationProperties(0, MemLocationType.HOST, 0));
    calls.memMap(address, unit, 0, handle);
    assertThat(asked(driver, PointerAttribute.MEMORY_TYPE, address)).isEqualTo(1);
    assertThat(asked(driver, PointerAttribute.DEVICE_ORDINAL, address)).isZero();
    assertThat(asked(driver, PointerAttribute.IS_MANAGED, address)).isZero();
    invalid(() -> asked(driver, HOST_POINTER, address));
    calls.memUnmap(address, unit);
    calls.memRelease(handle);
    invalid(() -> calls.memRelease(handle));
    calls.memAddressFree(address, unit);
  }

  /**
   * Memory is made where there is a place for it, and for those who can have it.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfNoPlace_isRefused(CudaDriver driver) {
    long unit = unit(driver);
    VirtualCalls calls = driver.virtual();
    for (AllocationProperties none :
        new AllocationProperties[] {
          new AllocationProperties(0, 9, 0),
          new AllocationProperties(0, MemLocationType.HOST_NUMA, 99),
          new AllocationProperties(2, MemLocationType.DEVICE, 0), // for Windows
          new AllocationProperties(MemHandleType.FILE_DESCRIPTOR, MemLocationType.HOST, 0),
          new AllocationProperties(8, MemLocationType.HOST, 0),
        }) {
      invalid(() -> calls.memCreate(unit, none));
    }
    Refused.with(
        CudaStatus.INVALID_DEVICE,
        () -> calls.memCreate(unit, AllocationProperties.ofDevice(1000, MemHandleType.NONE)));
    invalid(() -> calls.memGetAllocationGranularity(PLAIN, 2));
    Mapped mapped = Mapped.of(driver, PLAIN, 1);
    invalid(() ->
        calls.memSetAccess(mapped.address, mapped.bytes, MemLocationType.DEVICE, new int[0], 3));
    mapped.end();
  }

  /**
   * Work may be in flight while other memory is mapped and unmapped.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void contentMoves_withItsMemory(CudaDriver driver) {
    Mapped mapped = Mapped.of(driver, PLAIN, 1);
    fill(driver, mapped.address, 4, mapped.bytes);
    driver.virtual().memUnmap(mapped.address, mapped.bytes);
    long moved = mapped.address + 3 * mapped.bytes;
    driver.virtual().memMap(moved, mapped.bytes, 0, mapped.handle);
    readWrite(driver, moved, mapped.bytes);
    assertThat(read(driver, moved + 1)).isEqualTo((byte) 4);
    driver.virtual().memUnmap(moved, mapped.bytes);
    driver.virtual().memRelease(mapped.handle);
    driver.virtual().memAddressFree(mapped.address, mapped.range);
  }

  /**
   * Memory is imported by a descriptor, and is the same memory.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void exportedMemory_isImportedAsTheSame(CudaDriver driver) {
    DescriptorCalls descriptors = DescriptorCalls.find().orElse(null);
    assumeTrue(descriptors != null, "no descriptors");
    Mapped mapped = Mapped.of(driver, SHAREABLE, 1);
    int descriptor = driver.virtual().memExportToShareableHandle(mapped.handle);
    long imported = driver.virtual().memImportFromShareableHandle(descriptor);
    descriptors.close(descriptor);
    assertThat(driver.virtual().memGetAllocationPropertiesFromHandle(imported).locationType())
        .isEqualTo(MemLocationType.DEVICE);
    long there = mapped.address + 2 * mapped.bytes;
    driver.virtual().memMap(there, mapped.bytes, 0, imported);
    readWrite(driver, there, mapped.bytes);
    fill(driver, mapped.address, 6, mapped.bytes);
    assertThat(read(driver, there + 17)).isEqualTo((byte) 6);
    driver.virtual().memUnmap(there, mapped.bytes);
    driver.virtual().memRelease(imported);
    assertThat(read(driver, mapped.address)).isEqualTo((byte) 6);
    mapped.end();
  }

  /**
   * Two descriptors of the same export are told to be of the same memory where the system compares,
   * and those of other memory, or of another export, are not.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void descriptorsOfMemory_areToldApart(CudaDriver driver) {
    DescriptorCalls descriptors = DescriptorCalls.find().orElse(null);
    assumeTrue(descriptors != null, "no descriptors");
    Mapped one = Mapped.of(driver, SHAREABLE, 1);
    Mapped two = Mapped.of(driver, SHAREABLE, 1);
    int ofOne = driver.virtual().memExportToShareableHandle(one.handle);
    int ofTwo = driver.virtual().memExportToShareableHandle(two.handle);
    int again = descriptors.duplicate(ofOne);
    assertThat(descriptors.compare(ofOne, ofTwo)).isNotEqualTo(Sameness.SAME);
    assertThat(descriptors.compare(ofOne, again)).isNotEqualTo(Sameness.OTHER);
    descriptors.close(ofOne);
    fill(driver, one.address, 5, one.bytes);
    long imported = driver.virtual().memImportFromShareableHandle(again);
    long there = two.address + 2 * two.bytes;
    refused(() -> driver.virtual().memMap(there, 2 * one.bytes, 0, imported));
    driver.virtual().memMap(there, one.bytes, 0, imported);
    readWrite(driver, there, one.bytes);
    assertThat(read(driver, there)).isEqualTo((byte) 5);
    driver.virtual().memUnmap(there, one.bytes);
    driver.virtual().memRelease(imported);
    descriptors.close(again);
    descriptors.close(ofTwo);
    one.end();
    two.end();
  }

  /**
   * Memory that was not made for it is not exported, and a descriptor of something else is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void wrongDescriptors_areRefused(CudaDriver driver) {
    DescriptorCalls descriptors = DescriptorCalls.find().orElse(null);
    assumeTrue(descriptors != null, "no descriptors");
    Mapped mapped = Mapped.of(driver, PLAIN, 1);
    refused(() -> driver.virtual().memExportToShareableHandle(mapped.handle));
    int file = descriptors.memoryFile("something else", 4096);
    refused(() -> driver.virtual().memImportFromShareableHandle(file));
    descriptors.close(file);
    mapped.end();
  }
}
