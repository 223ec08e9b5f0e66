package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolProperties;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Memory in stream order and pools, as the sanitizer sees them. */
class SanitizerOrderedTest extends SanitizerTestBase {
  private static final PoolProperties PROPERTIES = new PoolProperties(1, 0, 1, 0, 0);

  private final long one = stream();
  private final long other = stream();

  private long ordered() {
    return driver.memAllocAsync(0, 1024, one);
  }

  private void order(long first, long then) {
    long event = event();
    driver.eventRecord(0, event, first);
    driver.streamWaitEvent(0, then, event);
    driver.eventDestroy(0, event);
  }

  @Test
  void orderlyProgram_isSilent() {
    long pool = driver.memPoolCreate(PROPERTIES);
    driver.deviceSetMemPool(0, pool);
    driver.memPoolSetAttribute(pool, 4, 1);
    driver.memPoolSetAccess(pool, 1, new int[] {0}, 3);
    long address = driver.memAllocFromPoolAsync(0, 1024, pool, one);
    write(address, one);
    order(one, other);
    read(address, other);
    driver.memFreeAsync(0, address, other);
    long plain = ordered();
    write(plain, one);
    driver.streamSynchronize(0, one);
    driver.memFree(0, plain);
    driver.memPoolTrimTo(driver.deviceGetDefaultMemPool(0), 0);
    driver.memPoolDestroy(pool);
    driver.ctxSynchronize(0);
    driver.streamDestroy(0, one);
    driver.streamDestroy(0, other);
    driver.close();

    assertSilent();
  }

  @Test
  void useAfterTheFree_isReported_evenOnItsOwnStream() {
    long address = ordered();
    driver.memFreeAsync(0, address, one);

    write(address, one);

    SanitizerReport report = assertOnly(Misuse.USE_AFTER_FREE);
    assertThat(report.sites())
        .extracting(Site::call)
        .satisfiesExactly(
            use -> assertThat(use).startsWith("memsetD8Async("),
            free -> assertThat(free).startsWith("memFreeAsync("),
            allocation -> assertThat(allocation).startsWith("memAllocAsync("));
  }

  @Test
  void secondFree_isDouble_byEitherFunction() {
    long address = ordered();
    driver.memFreeAsync(0, address, one);

    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.memFreeAsync(0, address, one));
    assertThatExceptionOfType(CudaException.class).isThrownBy(() -> driver.memFree(0, address));

    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.DOUBLE_FREE, Misuse.DOUBLE_FREE);
  }

  @Test
  void freeOfPlainMemory_isInvalid() {
    long address = memory();

    driver.memFreeAsync(0, address, one);

    assertThat(assertOnly(Misuse.INVALID_FREE).message()).contains("is freed by memFree");
  }

  @Test
  void freeThatOtherWorkIsNotOrderedBefore_isWhileInUse() {
    long address = ordered();
    order(one, other);
    write(address, other);

    driver.memFreeAsync(0, address, one);

    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void useThatIsNotOrderedBehindTheAllocation_isARace() {
    long address = ordered();

    read(address, other);

    SanitizerReport report = assertOnly(Misuse.RACE);
    assertThat(report.sites().get(1).call()).startsWith("memAllocAsync(");
  }

  @Test
  void plainFreeOfOrderedMemory_needsASynchronization() {
    long address = ordered();

    driver.memFree(0, address);

    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void addressGivenOutAgain_isLive() {
    long address = ordered();
    driver.memFreeAsync(0, address, one);
    SanitizerDriver above =
        SanitizerDriver.reporting(
            new ForwardingDriver(tiny.driver) {
              @Override
              public long memAllocAsync(int device, long bytes, long stream) {
                return 0x7000;
              }

              @Override
              public void memFreeAsync(int device, long freed, long stream) {}
            },
            reports::add);
    for (int i = 0; i < 3; i++) {
      above.memAllocAsync(0, 64, 0);
      above.memsetD8Async(0, 0x7000, (byte) 1, 64, 0);
      above.memFreeAsync(0, 0x7000, 0);
    }

    assertSilent();
  }

  @Test
  void leaks_areMemoryAndPools_butNoPoolOfTheDriver() {
    ordered();
    driver.memPoolCreate(PROPERTIES);
    driver.deviceGetMemPool(0);
    driver.streamDestroy(0, one);
    driver.streamDestroy(0, other);

    driver.close();

    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.LEAK, Misuse.LEAK);
    assertThat(reports).extracting(SanitizerReport::message).anyMatch(m -> m.contains("pool 0x"));
  }

  @Test
  void destroyedOrUnknownPool_isReported() {
    long pool = driver.memPoolCreate(PROPERTIES);
    driver.memPoolDestroy(pool);
    driver.memAllocFromPoolAsync(0, 64, pool, one);
    assertOnly(Misuse.DESTROYED_HANDLE);
    reports.clear();

    driver.memPoolGetAttribute(0xABC, 5);
    driver.memPoolTrimTo(0xABC, 5);
    assertOnly(Misuse.UNKNOWN_HANDLE);
    reports.clear();

    assertThatExceptionOfType(CudaException.class).isThrownBy(() -> driver.memPoolDestroy(pool));
    assertOnly(Misuse.DOUBLE_FREE);
  }

  @Test
  void everyCallWithADestroyedPool_isReported() {
    long pool = driver.memPoolCreate(PROPERTIES);
    driver.memPoolDestroy(pool);
    List<Runnable> calls =
        List.of(
            () -> driver.deviceSetMemPool(0, pool),
            () -> driver.memSetMemPool(1, 0, 1, pool),
            () -> driver.memPoolTrimTo(pool, 0),
            () -> driver.memPoolGetAttribute(pool, 5),
            () -> driver.memPoolSetAttribute(pool, 4, 0),
            () -> driver.memPoolGetAccess(pool, 1, 0),
            () -> driver.memPoolSetAccess(pool, 1, new int[] {0}, 3),
            () -> driver.memPoolExportToShareableHandle(pool));
    for (Runnable call : calls) {
      try {
        call.run();
      } catch (CudaException refused) {
        assertThat(refused).hasMessageContaining("ool");
      }
      assertOnly(Misuse.DESTROYED_HANDLE);
      reports.clear();
    }
  }

  /** The legacy default stream comes after all work of streams that block with it. */
  @Test
  void freeOnTheLegacyStream_isOrderedBehindBlockingStreams() {
    long blocking = driver.streamCreateWithPriority(0, 0, 0);
    long address = driver.memAllocAsync(0, 1024, blocking);
    write(address, blocking);
    driver.memFreeAsync(0, address, 0);

    assertSilent();
  }

  @Test
  void refusedFree_leavesTheBlockLive_andTheFaultsFreeItWithoutItsStream() {
    Faults failing = Faults.at(tiny.driver, 1).only("memFreeAsync");
    SanitizerDriver above = SanitizerDriver.reporting(failing.driver(), reports::add);
    long stream = above.streamCreateWithPriority(0, 1, 0);
    long address = above.memAllocAsync(0, 64, stream);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> above.memFreeAsync(0, address, stream));
    above.memsetD8Async(0, address, (byte) 1, 64, stream);
    assertSilent();
    above.streamDestroy(0, stream);

    assertThat(failing.freeRefused()).singleElement().asString().startsWith("memFreeAsync(");
    assertThat(tiny.live()).doesNotContainKey(address);
  }

  @Test
  void refusedFree_isSettledByEitherFunction() {
    Faults failing = Faults.at(tiny.driver, 1).only("memFreeAsync");
    long address = failing.driver().memAllocAsync(0, 64, 0);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> failing.driver().memFreeAsync(0, address, 0));
    failing.driver().memFree(0, address);

    assertThat(failing.freeRefused()).isEmpty();
  }
}
