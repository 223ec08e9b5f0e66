package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.ValueLayout;

/** What every driver promises about managed memory. Extend it in the tests of a driver. */
public abstract class DriverManagedContract {
  private static final long NULL_STREAM = 0;
  private static final long PAGE = 2 << 20;
  private static final int ON_DEVICE = 1;
  private static final int ON_HOST = 2;
  private static final int READ_MOSTLY = 1;
  private static final int PREFERRED_LOCATION = 2;
  private static final int ACCESSED_BY = 3;
  private static final int LAST_PREFETCH_LOCATION = 4;
  private static final int HOST_ID = -1;
  private static final int NOWHERE = -2;

  /** For subclasses. */
  protected DriverManagedContract() {}

  /**
   * A prefetch moves exactly its range and keeps the bytes.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void prefetch_movesExactlyTheRange_andKeepsTheBytes(CudaDriver driver) {
    var memory = driver.memory().memAllocManaged(0, 3 * PAGE, 1);
    long address = memory.address();
    memory.fill((byte) 7);
    driver.memory().memPrefetchAsync(0, address + PAGE, PAGE, ON_DEVICE, 0, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address)).isEqualTo(NOWHERE);
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address + PAGE)).isZero();
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address + 2 * PAGE)).isEqualTo(NOWHERE);
    driver.memory().memPrefetchAsync(0, address, 3 * PAGE, ON_HOST, 0, NULL_STREAM);
    driver.streams().streamSynchronize(0, NULL_STREAM);
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address + PAGE)).isEqualTo(HOST_ID);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 2 * PAGE)).isEqualTo((byte) 7);
    driver.memory().memFree(0, address);
  }

  /**
   * Every advice is accepted.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void everyAdvice_isTaken(CudaDriver driver) {
    long address = driver.memory().memAllocManaged(0, PAGE, 1).address();
    for (int location : new int[] {ON_DEVICE, ON_HOST}) {
      for (int advice = 1; advice <= 6; advice++) {
        driver.memory().memAdvise(0, address, PAGE, advice, location, 0);
      }
    }
    driver.memory().memAdvise(0, address, PAGE, 1, ON_DEVICE, 0);
    assertThat(range(driver, READ_MOSTLY, address)).isEqualTo(1);
    driver.memory().memAdvise(0, address, PAGE, 2, ON_DEVICE, 0);
    assertThat(range(driver, READ_MOSTLY, address)).isZero();
    driver.memory().memAdvise(0, address, PAGE, 3, ON_HOST, 0);
    assertThat(range(driver, PREFERRED_LOCATION, address)).isEqualTo(HOST_ID);
    driver.memory().memAdvise(0, address, PAGE, 3, ON_DEVICE, 0);
    assertThat(range(driver, PREFERRED_LOCATION, address)).isZero();
    driver.memory().memFree(0, address);
  }

  /**
   * The devices that access a range are reported as a list.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void placesThatAccess_areAList(CudaDriver driver) {
    int places = driver.devices().deviceGetCount() + 1;
    long address = driver.memory().memAllocManaged(0, PAGE, 1).address();
    assertThat(accessedBy(driver, address, places)).hasSize(places).containsOnly(NOWHERE);
    driver.memory().memAdvise(0, address, PAGE, 5, ON_DEVICE, 0);
    assertThat(accessedBy(driver, address, places)).hasSize(places).contains(0, NOWHERE);
    driver.memory().memAdvise(0, address, PAGE, 5, ON_HOST, 0);
    assertThat(accessedBy(driver, address, places)).hasSize(places).contains(0, HOST_ID);
    driver.memory().memAdvise(0, address, PAGE, 6, ON_DEVICE, 0);
    assertThat(accessedBy(driver, address, places)).contains(HOST_ID).doesNotContain(0);
    driver.memory().memFree(0, address);
  }

  private static int[] accessedBy(CudaDriver driver, long address, int places) {
    return driver.memory().memRangeGetAttributeList(0, ACCESSED_BY, address, PAGE, places);
  }

  /**
   * A list without places for answers is INVALID_VALUE.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void listOfNoPlaces_isInvalidValue(CudaDriver driver) {
    long address = driver.memory().memAllocManaged(0, PAGE, 1).address();
    Refused.with(CudaStatus.INVALID_VALUE, () -> accessedBy(driver, address, 0));
    Refused.with(CudaStatus.INVALID_VALUE, () -> accessedBy(driver, address, -1));
    driver.memory().memFree(0, address);
  }

  /**
   * Unknown advice and locations are refused.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void wrongAdviceAndLocations_areRefused(CudaDriver driver) {
    long address = driver.memory().memAllocManaged(0, PAGE, 1).address();
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.memory().memAdvise(0, address, PAGE, 77, ON_DEVICE, 0));
    Refused.withAny(() -> driver.memory().memAdvise(0, address, PAGE, 3, ON_DEVICE, 100_000));
    Refused.withAny(
        () -> driver.memory().memPrefetchAsync(0, address, PAGE, ON_DEVICE, 100_000, NULL_STREAM));
    driver.memory().memFree(0, address);
  }

  /**
   * Managed calls on memory that is not managed are INVALID_VALUE.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void memoryThatIsNotManaged_isInvalidValue(CudaDriver driver) {
    long address = driver.memory().memAlloc(0, PAGE);
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.memory().memPrefetchAsync(0, address, PAGE, ON_DEVICE, 0, NULL_STREAM));
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.memory().memAdvise(0, address, PAGE, 1, ON_DEVICE, 0));
    driver.memory().memFree(0, address);
  }

  private static int range(CudaDriver driver, int attribute, long address) {
    return driver.memory().memRangeGetAttribute(0, attribute, address, PAGE);
  }
}
