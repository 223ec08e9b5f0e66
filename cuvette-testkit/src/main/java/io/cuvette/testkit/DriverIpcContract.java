package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.PoolProperties;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * What every driver promises about sharing with other processes, as far as one process shows it: it
 * exports, and refuses what nobody exported. Extend it in the tests of a driver. Needs Linux.
 */
public abstract class DriverIpcContract {
  private static final int HANDLE_TYPES_OF_POOLS = 119;
  private static final int IPC_EVENTS = 125;
  private static final int FILE_DESCRIPTOR = 1;
  private static final int PINNED = 1;
  private static final int ON_DEVICE = 1;
  private static final int NO_TIMING = 2;
  private static final int INTERPROCESS = 4;
  private static final long NULL_STREAM = 0;
  private static final long BYTES = 2 << 20;
  private static final byte[] GARBAGE = new byte[IpcCalls.HANDLE_BYTES];

  static {
    Arrays.fill(GARBAGE, (byte) 0x5a);
  }

  /** For subclasses. */
  protected DriverIpcContract() {}

  private static DescriptorCalls descriptors() {
    return DescriptorCalls.find().orElseThrow();
  }

  private static long exportablePool(CudaDriver driver) {
    assumeTrue(
        (driver.deviceGetAttribute(HANDLE_TYPES_OF_POOLS, 0) & FILE_DESCRIPTOR) != 0,
        "pools of this device have no descriptors");
    return driver.memPoolCreate(new PoolProperties(PINNED, FILE_DESCRIPTOR, ON_DEVICE, 0, 0));
  }

  private static long plainPool(CudaDriver driver) {
    return driver.memPoolCreate(new PoolProperties(PINNED, 0, ON_DEVICE, 0, 0));
  }

  private static void assumeIpc(CudaDriver driver) {
    assumeTrue(driver.deviceGetAttribute(IPC_EVENTS, 0) != 0, "this device shares no events");
  }

  @CudaTest
  public void everyExportOfAPool_isAnOpenDescriptorOfTheCallers(CudaDriver driver) {
    DescriptorCalls descriptors = descriptors();
    long pool = exportablePool(driver);
    int one = driver.memPoolExportToShareableHandle(pool);
    int other = driver.memPoolExportToShareableHandle(pool);
    assertThat(one).isNotEqualTo(other).isNotNegative();
    descriptors.close(one);
    assertThat(descriptors.isOpen(other)).isTrue();
    driver.memPoolDestroy(pool);
    assertThat(descriptors.isOpen(other)).isTrue();
    descriptors.close(other);
  }

  @CudaTest
  public void exportsThatAreClosed_leaveNothingOpen(CudaDriver driver) throws IOException {
    DescriptorCalls descriptors = descriptors();
    long pool = exportablePool(driver);
    descriptors.close(driver.memPoolExportToShareableHandle(pool));
    long before = openDescriptors();
    for (int i = 0; i < 100; i++) {
      descriptors.close(driver.memPoolExportToShareableHandle(pool));
    }
    assertThat(openDescriptors()).isEqualTo(before);
    driver.memPoolDestroy(pool);
  }

  private static long openDescriptors() throws IOException {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.count();
    }
  }

  @CudaTest
  public void poolWithoutHandleTypes_isNotExported(CudaDriver driver) {
    long pool = plainPool(driver);
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memPoolExportToShareableHandle(pool));
    long address = driver.memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    Refused.withAny(() -> driver.memPoolExportPointer(address));
    driver.memFreeAsync(0, address, NULL_STREAM);
    driver.streamSynchronize(0, NULL_STREAM);
    driver.memPoolDestroy(pool);
  }

  /** A driver exports memory of a pool only once the pool itself is exported. */
  @CudaTest
  public void memoryOfAnExportedPool_isExported(CudaDriver driver) {
    DescriptorCalls descriptors = descriptors();
    long pool = exportablePool(driver);
    long early = driver.memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    driver.streamSynchronize(0, NULL_STREAM);
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.memPoolExportPointer(early));
    driver.memFreeAsync(0, early, NULL_STREAM);
    descriptors.close(driver.memPoolExportToShareableHandle(pool));
    long one = driver.memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    long other = driver.memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    driver.streamSynchronize(0, NULL_STREAM);
    byte[] handle = driver.memPoolExportPointer(one);
    assertThat(handle).hasSize(IpcCalls.HANDLE_BYTES).isNotEqualTo(new byte[handle.length]);
    assertThat(driver.memPoolExportPointer(other)).isNotEqualTo(handle);
    driver.memFreeAsync(0, one, NULL_STREAM);
    driver.memFreeAsync(0, other, NULL_STREAM);
    driver.streamSynchronize(0, NULL_STREAM);
    driver.memPoolDestroy(pool);
  }

  @CudaTest
  public void memoryOfNoPool_isNotExportedAsOfOne(CudaDriver driver) {
    long address = driver.memAlloc(0, BYTES);
    Refused.withAny(() -> driver.memPoolExportPointer(address));
    driver.memFree(0, address);
  }

  /** The descriptor stays open: it is the caller's. */
  @CudaTest
  public void descriptorOfSomethingElse_isNotImported(CudaDriver driver) {
    DescriptorCalls descriptors = descriptors();
    int memory = descriptors.memoryFile("no pool", BYTES);
    Refused.withAny(() -> driver.memPoolImportFromShareableHandle(memory));
    assertThat(descriptors.isOpen(memory)).isTrue();
    descriptors.close(memory);
    Refused.withAny(() -> driver.memPoolImportFromShareableHandle(memory));
    Refused.withAny(() -> driver.memPoolImportFromShareableHandle(-1));
  }

  @CudaTest
  public void handlesThatNobodyMade_areRefused(CudaDriver driver) {
    assumeIpc(driver);
    Refused.withAny(() -> driver.ipcOpenMemHandle(0, GARBAGE));
    Refused.withAny(() -> driver.ipcOpenMemHandle(0, new byte[IpcCalls.HANDLE_BYTES]));
    Refused.withAny(() -> driver.ipcOpenEventHandle(0, GARBAGE));
    Refused.withAny(() -> driver.ipcOpenEventHandle(0, new byte[IpcCalls.HANDLE_BYTES]));
    long pool = exportablePool(driver);
    Refused.withAny(() -> driver.memPoolImportPointer(pool, GARBAGE));
    driver.memPoolDestroy(pool);
  }

  @CudaTest
  public void handleOfAnotherLength_isAnIllegalArgument(CudaDriver driver) {
    long pool = plainPool(driver);
    for (int length : new int[] {0, IpcCalls.HANDLE_BYTES - 1, IpcCalls.HANDLE_BYTES + 1}) {
      byte[] wrong = new byte[length];
      List.<Runnable>of(
              () -> driver.memPoolImportPointer(pool, wrong),
              () -> driver.ipcOpenMemHandle(0, wrong),
              () -> driver.ipcOpenEventHandle(0, wrong))
          .forEach(call ->
              assertThatThrownBy(call::run)
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("%d bytes (expected: 64)", length));
    }
    driver.memPoolDestroy(pool);
  }

  @CudaTest
  public void plainMemory_isExported_butNotOpenedWhereItIs(CudaDriver driver) {
    assumeIpc(driver);
    long address = driver.memAlloc(0, BYTES);
    byte[] handle = driver.ipcGetMemHandle(0, address);
    assertThat(handle).hasSize(IpcCalls.HANDLE_BYTES).isNotEqualTo(new byte[handle.length]);
    Refused.withAny(() -> driver.ipcOpenMemHandle(0, handle));
    Refused.withAny(() -> driver.ipcCloseMemHandle(0, address));
    driver.memFree(0, address);
  }

  @CudaTest
  public void memoryOfTheHost_isNotExported(CudaDriver driver) {
    long address = driver.memHostAlloc(0, BYTES, 1).address();
    Refused.withAny(() -> driver.ipcGetMemHandle(0, address));
    driver.memFreeHost(0, address);
  }

  @CudaTest
  public void event_isExportedIfItWasMadeForThat(CudaDriver driver) {
    assumeIpc(driver);
    long shared = driver.eventCreate(0, NO_TIMING | INTERPROCESS);
    byte[] handle = driver.ipcGetEventHandle(0, shared);
    assertThat(handle).hasSize(IpcCalls.HANDLE_BYTES).isNotEqualTo(new byte[handle.length]);
    driver.eventDestroy(0, shared);
    long own = driver.eventCreate(0, NO_TIMING);
    Refused.withAny(() -> driver.ipcGetEventHandle(0, own));
    driver.eventDestroy(0, own);
  }
}
