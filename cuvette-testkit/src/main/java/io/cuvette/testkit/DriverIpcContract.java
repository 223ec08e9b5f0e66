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
 * exports, and refuses what was not exported. Extend it in the tests of a driver. Needs Linux.
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
        (driver.devices().deviceGetAttribute(HANDLE_TYPES_OF_POOLS, 0) & FILE_DESCRIPTOR) != 0,
        "pools of this device have no descriptors");
    return driver
        .pools()
        .memPoolCreate(new PoolProperties(PINNED, FILE_DESCRIPTOR, ON_DEVICE, 0, 0));
  }

  private static long plainPool(CudaDriver driver) {
    return driver.pools().memPoolCreate(new PoolProperties(PINNED, 0, ON_DEVICE, 0, 0));
  }

  private static void assumeIpc(CudaDriver driver) {
    assumeTrue(
        driver.devices().deviceGetAttribute(IPC_EVENTS, 0) != 0, "this device shares no events");
  }

  /**
   * Every export of a pool is a new open descriptor, which the caller closes.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void everyExportOfAPool_isAnOpenDescriptorOfTheCallers(CudaDriver driver) {
    DescriptorCalls descriptors = descriptors();
    long pool = exportablePool(driver);
    int one = driver.sharing().memPoolExportToShareableHandle(pool);
    int other = driver.sharing().memPoolExportToShareableHandle(pool);
    assertThat(one).isNotEqualTo(other).isNotNegative();
    descriptors.close(one);
    assertThat(descriptors.isOpen(other)).isTrue();
    driver.pools().memPoolDestroy(pool);
    assertThat(descriptors.isOpen(other)).isTrue();
    descriptors.close(other);
  }

  /**
   * Exports that are closed leave no descriptor open.
   *
   * @param driver the driver under test
   * @throws IOException if descriptors cannot be listed
   */
  @CudaTest
  public void exportsThatAreClosed_leaveNothingOpen(CudaDriver driver) throws IOException {
    DescriptorCalls descriptors = descriptors();
    long pool = exportablePool(driver);
    descriptors.close(driver.sharing().memPoolExportToShareableHandle(pool));
    long before = openDescriptors();
    for (int i = 0; i < 100; i++) {
      descriptors.close(driver.sharing().memPoolExportToShareableHandle(pool));
    }
    assertThat(openDescriptors()).isEqualTo(before);
    driver.pools().memPoolDestroy(pool);
  }

  private static long openDescriptors() throws IOException {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.count();
    }
  }

  /**
   * A pool without handle types cannot be exported.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void poolWithoutHandleTypes_isNotExported(CudaDriver driver) {
    long pool = plainPool(driver);
    Refused.with(
        CudaStatus.INVALID_VALUE, () -> driver.sharing().memPoolExportToShareableHandle(pool));
    long address = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    Refused.withAny(() -> driver.sharing().memPoolExportPointer(address));
    driver.ordered().memFreeAsync(0, address, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    driver.pools().memPoolDestroy(pool);
  }

  /**
   * A driver exports memory of a pool only once the pool itself is exported.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfAnExportedPool_isExported(CudaDriver driver) {
    DescriptorCalls descriptors = descriptors();
    long pool = exportablePool(driver);
    long early = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.sharing().memPoolExportPointer(early));
    driver.ordered().memFreeAsync(0, early, NULL_STREAM);
    descriptors.close(driver.sharing().memPoolExportToShareableHandle(pool));
    long one = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    long other = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    byte[] handle = driver.sharing().memPoolExportPointer(one);
    assertThat(handle).hasSize(IpcCalls.HANDLE_BYTES).isNotEqualTo(new byte[handle.length]);
    assertThat(driver.sharing().memPoolExportPointer(other)).isNotEqualTo(handle);
    driver.ordered().memFreeAsync(0, one, NULL_STREAM);
    driver.ordered().memFreeAsync(0, other, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    driver.pools().memPoolDestroy(pool);
  }

  /**
   * Memory outside pools cannot be exported as memory of a pool.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfNoPool_isNotExportedAsOfOne(CudaDriver driver) {
    long address = driver.memory().memAlloc(0, BYTES);
    Refused.withAny(() -> driver.sharing().memPoolExportPointer(address));
    driver.memory().memFree(0, address);
  }

  /**
   * The descriptor stays open: it is the caller's.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void descriptorOfSomethingElse_isNotImported(CudaDriver driver) {
    DescriptorCalls descriptors = descriptors();
    int memory = descriptors.memoryFile("no pool", BYTES);
    Refused.withAny(() -> driver.sharing().memPoolImportFromShareableHandle(memory));
    assertThat(descriptors.isOpen(memory)).isTrue();
    descriptors.close(memory);
    Refused.withAny(() -> driver.sharing().memPoolImportFromShareableHandle(memory));
    Refused.withAny(() -> driver.sharing().memPoolImportFromShareableHandle(-1));
  }

  /**
   * Handles that no process exported are refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void handlesThatNobodyMade_areRefused(CudaDriver driver) {
    assumeIpc(driver);
    Refused.withAny(() -> driver.sharing().ipcOpenMemHandle(0, GARBAGE));
    Refused.withAny(() -> driver.sharing().ipcOpenMemHandle(0, new byte[IpcCalls.HANDLE_BYTES]));
    Refused.withAny(() -> driver.sharing().ipcOpenEventHandle(0, GARBAGE));
    Refused.withAny(() -> driver.sharing().ipcOpenEventHandle(0, new byte[IpcCalls.HANDLE_BYTES]));
    long pool = exportablePool(driver);
    Refused.withAny(() -> driver.sharing().memPoolImportPointer(pool, GARBAGE));
    driver.pools().memPoolDestroy(pool);
  }

  /**
   * A handle of another length is an IllegalArgumentException.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void handleOfAnotherLength_isAnIllegalArgument(CudaDriver driver) {
    long pool = plainPool(driver);
    for (int length : new int[] {0, IpcCalls.HANDLE_BYTES - 1, IpcCalls.HANDLE_BYTES + 1}) {
      byte[] wrong = new byte[length];
      List.<Runnable>of(
              () -> driver.sharing().memPoolImportPointer(pool, wrong),
              () -> driver.sharing().ipcOpenMemHandle(0, wrong),
              () -> driver.sharing().ipcOpenEventHandle(0, wrong))
          .forEach(call ->
              assertThatThrownBy(call::run)
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("%d bytes (expected: 64)", length));
    }
    driver.pools().memPoolDestroy(pool);
  }

  /**
   * Plain memory can be exported but not opened in its own process.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void plainMemory_isExported_butNotOpenedWhereItIs(CudaDriver driver) {
    assumeIpc(driver);
    long address = driver.memory().memAlloc(0, BYTES);
    byte[] handle = driver.sharing().ipcGetMemHandle(0, address);
    assertThat(handle).hasSize(IpcCalls.HANDLE_BYTES).isNotEqualTo(new byte[handle.length]);
    Refused.withAny(() -> driver.sharing().ipcOpenMemHandle(0, handle));
    Refused.withAny(() -> driver.sharing().ipcCloseMemHandle(0, address));
    driver.memory().memFree(0, address);
  }

  /**
   * Host memory cannot be exported.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryOfTheHost_isNotExported(CudaDriver driver) {
    long address = driver.memory().memHostAlloc(0, BYTES, 1).address();
    Refused.withAny(() -> driver.sharing().ipcGetMemHandle(0, address));
    driver.memory().memFreeHost(0, address);
  }

  /**
   * Only events created for other processes can be exported.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void event_isExportedIfItWasMadeForThat(CudaDriver driver) {
    assumeIpc(driver);
    long shared = driver.events().eventCreate(0, NO_TIMING | INTERPROCESS);
    byte[] handle = driver.sharing().ipcGetEventHandle(0, shared);
    assertThat(handle).hasSize(IpcCalls.HANDLE_BYTES).isNotEqualTo(new byte[handle.length]);
    driver.events().eventDestroy(0, shared);
    long own = driver.events().eventCreate(0, NO_TIMING);
    Refused.withAny(() -> driver.sharing().ipcGetEventHandle(0, own));
    driver.events().eventDestroy(0, own);
  }
}
