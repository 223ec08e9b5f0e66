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

  @CudaTest
  public void prefetch_movesExactlyTheRange_andKeepsTheBytes(CudaDriver driver) {
    var memory = driver.memAllocManaged(0, 3 * PAGE, 1);
    long address = memory.address();
    memory.fill((byte) 7);
    driver.memPrefetchAsync(0, address + PAGE, PAGE, ON_DEVICE, 0, NULL_STREAM);
    driver.streamSynchronize(0, NULL_STREAM);
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address)).isEqualTo(NOWHERE);
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address + PAGE)).isZero();
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address + 2 * PAGE)).isEqualTo(NOWHERE);
    driver.memPrefetchAsync(0, address, 3 * PAGE, ON_HOST, 0, NULL_STREAM);
    driver.streamSynchronize(0, NULL_STREAM);
    assertThat(range(driver, LAST_PREFETCH_LOCATION, address + PAGE)).isEqualTo(HOST_ID);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 2 * PAGE)).isEqualTo((byte) 7);
    driver.memFree(0, address);
  }

  @CudaTest
  public void everyAdvice_isTaken(CudaDriver driver) {
    long address = driver.memAllocManaged(0, PAGE, 1).address();
    for (int location : new int[] {ON_DEVICE, ON_HOST}) {
      for (int advice = 1; advice <= 6; advice++) {
        driver.memAdvise(0, address, PAGE, advice, location, 0);
      }
    }
    driver.memAdvise(0, address, PAGE, 1, ON_DEVICE, 0);
    assertThat(range(driver, READ_MOSTLY, address)).isEqualTo(1);
    driver.memAdvise(0, address, PAGE, 2, ON_DEVICE, 0);
    assertThat(range(driver, READ_MOSTLY, address)).isZero();
    driver.memAdvise(0, address, PAGE, 3, ON_HOST, 0);
    assertThat(range(driver, PREFERRED_LOCATION, address)).isEqualTo(HOST_ID);
    driver.memAdvise(0, address, PAGE, 3, ON_DEVICE, 0);
    assertThat(range(driver, PREFERRED_LOCATION, address)).isZero();
    driver.memFree(0, address);
  }

  @CudaTest
  public void placesThatAccess_areAList(CudaDriver driver) {
    int places = driver.deviceGetCount() + 1;
    long address = driver.memAllocManaged(0, PAGE, 1).address();
    assertThat(accessedBy(driver, address, places)).hasSize(places).containsOnly(NOWHERE);
    driver.memAdvise(0, address, PAGE, 5, ON_DEVICE, 0);
    assertThat(accessedBy(driver, address, places)).hasSize(places).contains(0, NOWHERE);
    driver.memAdvise(0, address, PAGE, 5, ON_HOST, 0);
    assertThat(accessedBy(driver, address, places)).hasSize(places).contains(0, HOST_ID);
    driver.memAdvise(0, address, PAGE, 6, ON_DEVICE, 0);
    assertThat(accessedBy(driver, address, places)).contains(HOST_ID).doesNotContain(0);
    driver.memFree(0, address);
  }

  private static int[] accessedBy(CudaDriver driver, long address, int places) {
    return driver.memRangeGetAttributeList(0, ACCESSED_BY, address, PAGE, places);
  }

  @CudaTest
  public void listOfNoPlaces_isInvalidValue(CudaDriver driver) {
    long address = driver.memAllocManaged(0, PAGE, 1).address();
    Refused.with(CudaStatus.INVALID_VALUE, () -> accessedBy(driver, address, 0));
    Refused.with(CudaStatus.INVALID_VALUE, () -> accessedBy(driver, address, -1));
    driver.memFree(0, address);
  }

  @CudaTest
  public void wrongAdviceAndLocations_areRefused(CudaDriver driver) {
    long address = driver.memAllocManaged(0, PAGE, 1).address();
    Refused.with(
        CudaStatus.INVALID_VALUE, () -> driver.memAdvise(0, address, PAGE, 77, ON_DEVICE, 0));
    Refused.withAny(() -> driver.memAdvise(0, address, PAGE, 3, ON_DEVICE, 100_000));
    Refused.withAny(
        () -> driver.memPrefetchAsync(0, address, PAGE, ON_DEVICE, 100_000, NULL_STREAM));
    driver.memFree(0, address);
  }

  @CudaTest
  public void memoryThatIsNotManaged_isInvalidValue(CudaDriver driver) {
    long address = driver.memAlloc(0, PAGE);
    Refused.with(
        CudaStatus.INVALID_VALUE,
        () -> driver.memPrefetchAsync(0, address, PAGE, ON_DEVICE, 0, NULL_STREAM));
    Refused.with(
        CudaStatus.INVALID_VALUE, () -> driver.memAdvise(0, address, PAGE, 1, ON_DEVICE, 0));
    driver.memFree(0, address);
  }

  private static int range(CudaDriver driver, int attribute, long address) {
    return driver.memRangeGetAttribute(0, attribute, address, PAGE);
  }
}
