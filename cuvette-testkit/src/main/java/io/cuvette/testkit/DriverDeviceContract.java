package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;

/** What every driver promises about devices. Extend it in the tests of a driver. */
public abstract class DriverDeviceContract {
  private static final int COMPUTE_CAPABILITY_MAJOR = 75;
  private static final int PRINTF_FIFO_SIZE = 1;

  /** For subclasses. */
  protected DriverDeviceContract() {}

  /**
   * The driver has a name and a version.
   *
   * @param driver the driver under test
   * @param subject the device under test
   */
  @CudaTest
  public void driver_hasANameAndAVersion(CudaDriver driver, Subject subject) {
    assertThat(driver.name()).isNotBlank();
    assertThat(driver.isSimulated()).isEqualTo(subject.isSimulated());
    assertThat(driver.devices().driverGetVersion()).isGreaterThanOrEqualTo(11_000);
    driver.devices().runtimeGetVersion().ifPresent(version -> assertThat(version).isPositive());
  }

  /**
   * Every device has a name, an identity and memory.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void everyDevice_hasNameIdentityAndMemory(CudaDriver driver) {
    Set<UUID> seen = new HashSet<>();
    assertThat(driver.devices().deviceGetCount()).isPositive();
    for (int device = 0; device < driver.devices().deviceGetCount(); device++) {
      assertThat(driver.devices().deviceGetName(device)).isNotBlank();
      assertThat(seen.add(driver.devices().deviceGetUuid(device))).isTrue();
      assertThat(driver.devices().deviceTotalMem(device)).isPositive();
      MemoryInfo info = driver.devices().memGetInfo(device);
      assertThat(info.freeBytes()).isPositive().isLessThanOrEqualTo(info.totalBytes());
      assertThat(driver.devices().deviceGetAttribute(COMPUTE_CAPABILITY_MAJOR, device))
          .isPositive();
    }
  }

  /**
   * Numbers without a device are INVALID_DEVICE.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void numbersOfNoDevice_areInvalidDevice(CudaDriver driver) {
    for (int device : new int[] {-1, driver.devices().deviceGetCount(), Integer.MAX_VALUE}) {
      Refused.with(CudaStatus.INVALID_DEVICE, () -> driver.devices().deviceGetName(device));
      Refused.with(CudaStatus.INVALID_DEVICE, () -> driver.devices().deviceTotalMem(device));
      Refused.with(CudaStatus.INVALID_DEVICE, () -> driver.devices().deviceGetUuid(device));
      Refused.with(CudaStatus.INVALID_DEVICE, () -> driver.devices().deviceGetPciBusId(device));
      Refused.with(
          CudaStatus.INVALID_DEVICE,
          () -> driver.devices().deviceGetAttribute(COMPUTE_CAPABILITY_MAJOR, device));
    }
  }

  /**
   * The PCI bus identity of a device finds the device.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void pciBusId_leadsBack(CudaDriver driver) {
    for (int device = 0; device < driver.devices().deviceGetCount(); device++) {
      String id = driver.devices().deviceGetPciBusId(device);
      assertThat(driver.devices().deviceGetByPciBusId(id)).isEqualTo(device);
    }
    Refused.with(
        CudaStatus.INVALID_VALUE, () -> driver.devices().deviceGetByPciBusId("no address"));
    Refused.with(
        CudaStatus.INVALID_DEVICE, () -> driver.devices().deviceGetByPciBusId("FFFF:FF:1F.0"));
  }

  /**
   * An unknown attribute is INVALID_VALUE.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void unknownAttribute_isInvalidValue(CudaDriver driver) {
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.devices().deviceGetAttribute(100_000, 0));
    Refused.with(CudaStatus.INVALID_VALUE, () -> driver.devices().deviceGetAttribute(-1, 0));
  }

  /**
   * The least priority is not below the greatest in number.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void priorities_runFromLeastToGreatest(CudaDriver driver) {
    PriorityRange range = driver.devices().ctxGetStreamPriorityRange(0);
    assertThat(range.greatest()).isLessThanOrEqualTo(range.least());
    assertThat(range.contains(range.least()) && range.contains(range.greatest())).isTrue();
    assertThat(range.contains(range.least() + 1)).isFalse();
    assertThat(range.contains(range.greatest() - 1)).isFalse();
  }

  /**
   * Limits of the context can be read and set.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void limits_areReadAndSet(CudaDriver driver) {
    long before = driver.devices().ctxGetLimit(0, PRINTF_FIFO_SIZE);
    driver.devices().ctxSetLimit(0, PRINTF_FIFO_SIZE, 4 << 20);
    assertThat(driver.devices().ctxGetLimit(0, PRINTF_FIFO_SIZE)).isGreaterThanOrEqualTo(4 << 20);
    driver.devices().ctxSetLimit(0, PRINTF_FIFO_SIZE, before);
    Refused.withAny(() -> driver.devices().ctxGetLimit(0, 12_345));
  }

  /**
   * Profiling can be switched on and off, and off again.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void profiler_isStartedAndStopped(CudaDriver driver) {
    driver.devices().profilerStart(0);
    driver.devices().profilerStart(0);
    driver.devices().profilerStop(0);
    driver.devices().profilerStop(0);
    Refused.withAny(() -> driver.devices().profilerStart(-1));
    Refused.withAny(() -> driver.devices().profilerStop(12_345));
  }

  /**
   * A device is not a peer of itself.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void device_isNoPeerOfItself(CudaDriver driver) {
    assertThat(driver.devices().deviceCanAccessPeer(0, 0)).isFalse();
    Refused.withAny(() -> driver.devices().ctxEnablePeerAccess(0, 0));
  }

  /**
   * Peer access can be enabled once and disabled once.
   *
   * @param driver the driver under test
   */
  @CudaTest(devices = 2)
  public void peerAccess_isEnabledOnce_andTakenBackOnce(CudaDriver driver) {
    if (!driver.devices().deviceCanAccessPeer(0, 1)) {
      Refused.with(
          CudaStatus.PEER_ACCESS_UNSUPPORTED, () -> driver.devices().ctxEnablePeerAccess(0, 1));
      return;
    }
    EnabledPeers.takeBack(driver); // another test of the process may have enabled it
    driver.devices().ctxEnablePeerAccess(0, 1);
    Refused.with(
        CudaStatus.PEER_ACCESS_ALREADY_ENABLED, () -> driver.devices().ctxEnablePeerAccess(0, 1));
    driver.devices().ctxDisablePeerAccess(0, 1);
    Refused.with(
        CudaStatus.PEER_ACCESS_NOT_ENABLED, () -> driver.devices().ctxDisablePeerAccess(0, 1));
  }

  /**
   * Peer access between devices that are no peers is refused.
   *
   * @param driver the driver under test
   */
  @CudaTest(devices = 2, peers = "none")
  public void devicesThatAreNoPeers_areRefused(CudaDriver driver) {
    assertThat(driver.devices().deviceCanAccessPeer(0, 1)).isFalse();
    Refused.with(
        CudaStatus.PEER_ACCESS_UNSUPPORTED, () -> driver.devices().ctxEnablePeerAccess(0, 1));
  }

  /**
   * Closing a driver twice has the effect of closing it once.
   *
   * @param subject the device under test
   */
  @CudaTest
  public void closedTwice_isClosedOnce(Subject subject) {
    CudaDriver driver = DriverProviders.open(subject.specification());
    driver.devices().ctxSynchronize(0);
    driver.close();
    driver.close();
  }
}
