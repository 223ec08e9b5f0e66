package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolProperties;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Memory in stream order and pools, as the sanitizer sees them. */
class SanitizerOrderedTest extends SanitizerTestBase {
  private static final PoolProperties PROPERTIES = new PoolProperties(1, 0, 1, 0, 0);

  private final long one = stream();
  private final long other = stream();

  private long ordered() {
    return driver.ordered().memAllocAsync(0, 1024, one);
  }

  private void order(long first, long then) {
    long event = event();
    driver.events().eventRecord(0, event, first);
    driver.streams().streamWaitEvent(0, then, event);
    driver.events().eventDestroy(0, event);
  }

  @Test
  void orderlyProgram_isSilent() {
    long pool = driver.pools().memPoolCreate(PROPERTIES);
    driver.pools().deviceSetMemPool(0, pool);
    driver.pools().memPoolSetAttribute(pool, 4, 1);
    driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
    long address = driver.ordered().memAllocFromPoolAsync(0, 1024, pool, one);
    write(address, one);
    order(one, other);
    read(address, other);
    driver.ordered().memFreeAsync(0, address, other);
    long plain = ordered();
    write(plain, one);
    driver.streams().streamSynchronize(0, one);
    driver.memory().memFree(0, plain);
    driver.pools().memPoolTrimTo(driver.pools().deviceGetDefaultMemPool(0), 0);
    driver.pools().memPoolDestroy(pool);
    driver.devices().ctxSynchronize(0);
    driver.streams().streamDestroy(0, one);
    driver.streams().streamDestroy(0, other);
    driver.close();

    assertSilent();
  }

  @Test
  void useAfterTheFree_isReported_evenOnItsOwnStream() {
    long address = ordered();
    driver.ordered().memFreeAsync(0, address, one);

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
    driver.ordered().memFreeAsync(0, address, one);

    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.ordered().memFreeAsync(0, address, one));
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.memory().memFree(0, address));

    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.DOUBLE_FREE, Misuse.DOUBLE_FREE);
  }

  @Test
  void freeOfPlainMemory_isInvalid() {
    long address = memory();

    driver.ordered().memFreeAsync(0, address, one);

    assertThat(assertOnly(Misuse.INVALID_FREE).message()).contains("is freed by memFree");
  }

  @Test
  void freeThatOtherWorkIsNotOrderedBefore_isWhileInUse() {
    long address = ordered();
    order(one, other);
    write(address, other);

    driver.ordered().memFreeAsync(0, address, one);

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

    driver.memory().memFree(0, address);

    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  /** The driver does not wait for the streams of such memory, whichever pool lends it. */
  @Test
  void plainFreeOfOrderedMemoryThatAPoolLent_needsASynchronization() {
    long address = ordered();
    BlockListener.Block block = new BlockListener.Block(1, address, 512);
    driver.blockListener().blockAllocated(block, 0, one);
    driver.blockListener().blockFreed(block);

    driver.memory().memFree(0, address);

    assertOnly(Misuse.FREE_WHILE_IN_USE);
  }

  @Test
  void addressGivenOutAgain_isLive() {
    long address = ordered();
    driver.ordered().memFreeAsync(0, address, one);
    SanitizerDriver above =
        SanitizerDriver.reporting(
            new ForwardingDriver(tiny.driver) {

              private final OrderedCalls orderedCalls =
                  new ForwardingOrdered(delegate().ordered()) {
                    @Override
                    public long memAllocAsync(int device, long bytes, long stream) {
                      return 0x7000;
                    }

                    @Override
                    public void memFreeAsync(int device, long freed, long stream) {}
                  };

              @Override
              public OrderedCalls ordered() {
                return orderedCalls;
              }
            },
            reports::add);
    for (int i = 0; i < 3; i++) {
      above.ordered().memAllocAsync(0, 64, 0);
      above.transfers().memsetD8Async(0, 0x7000, (byte) 1, 64, 0);
      above.ordered().memFreeAsync(0, 0x7000, 0);
    }

    assertSilent();
  }

  @Test
  void leaks_areMemoryAndPools_butNoPoolOfTheDriver() {
    ordered();
    driver.pools().memPoolCreate(PROPERTIES);
    driver.pools().deviceGetMemPool(0);
    driver.streams().streamDestroy(0, one);
    driver.streams().streamDestroy(0, other);

    driver.close();

    assertThat(reports)
        .extracting(SanitizerReport::misuse)
        .containsExactly(Misuse.LEAK, Misuse.LEAK);
    assertThat(reports).extracting(SanitizerReport::message).anyMatch(m -> m.contains("pool 0x"));
  }

  @Test
  void destroyedOrUnknownPool_isReported() {
    long pool = driver.pools().memPoolCreate(PROPERTIES);
    driver.pools().memPoolDestroy(pool);
    driver.ordered().memAllocFromPoolAsync(0, 64, pool, one);
    assertOnly(Misuse.DESTROYED_HANDLE);
    reports.clear();

    driver.pools().memPoolGetAttribute(0xABC, 5);
    driver.pools().memPoolTrimTo(0xABC, 5);
    assertOnly(Misuse.UNKNOWN_HANDLE);
    reports.clear();

    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.pools().memPoolDestroy(pool));
    assertOnly(Misuse.DOUBLE_FREE);
  }

  @Test
  void everyCallWithADestroyedPool_isReported() {
    long pool = driver.pools().memPoolCreate(PROPERTIES);
    driver.pools().memPoolDestroy(pool);
    List<Runnable> calls =
        List.of(
            () -> driver.pools().deviceSetMemPool(0, pool),
            () -> driver.pools().memSetMemPool(1, 0, 1, pool),
            () -> driver.pools().memPoolTrimTo(pool, 0),
            () -> driver.pools().memPoolGetAttribute(pool, 5),
            () -> driver.pools().memPoolSetAttribute(pool, 4, 0),
            () -> driver.pools().memPoolGetAccess(pool, 1, 0),
            () -> driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3),
            () -> driver.sharing().memPoolExportToShareableHandle(pool));
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
  void waitForTheLegacyStream_isOneForBlockingStreams() {
    long block = memory();
    long blocking = blockingStream();
    long fourth = stream();
    write(block, blocking);
    driver.streams().streamSynchronize(0, 0);
    write(block, fourth);
    assertSilent();
    driver.streams().streamSynchronize(0, 0);
    write(block, blocking);

    assertOnly(Misuse.RACE);
  }

  @Test
  void freeOnTheLegacyStream_isOrderedBehindBlockingStreams() {
    long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);
    long address = driver.ordered().memAllocAsync(0, 1024, blocking);
    write(address, blocking);
    driver.ordered().memFreeAsync(0, address, 0);

    assertSilent();
  }

  @Test
  void refusedFree_leavesTheBlockLive_andTheFaultsFreeItWithoutItsStream() {
    Faults failing = Faults.at(tiny.driver, 1).only("memFreeAsync");
    SanitizerDriver above = SanitizerDriver.reporting(failing.driver(), reports::add);
    long stream = above.streams().streamCreateWithPriority(0, 1, 0);
    long address = above.ordered().memAllocAsync(0, 64, stream);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> above.ordered().memFreeAsync(0, address, stream));
    above.transfers().memsetD8Async(0, address, (byte) 1, 64, stream);
    assertSilent();
    above.streams().streamDestroy(0, stream);

    assertThat(failing.freeRefused()).singleElement().asString().startsWith("memFreeAsync(");
    assertThat(tiny.live()).doesNotContainKey(address);
  }

  @Test
  void refusedFree_isSettledByEitherFunction() {
    Faults failing = Faults.at(tiny.driver, 1).only("memFreeAsync");
    long address = failing.driver().ordered().memAllocAsync(0, 64, 0);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> failing.driver().ordered().memFreeAsync(0, address, 0));
    failing.driver().memory().memFree(0, address);

    assertThat(failing.freeRefused()).isEmpty();
  }

  /** What the host may write is not followed: only a pool of a device's own memory is. */
  @Test
  void memoryOfAPool_isUnwritten_ifOnlyItsDeviceCanWriteIt() {
    int device = MemLocationType.DEVICE;
    int pinned = MemAllocationType.PINNED;
    for (int location : new int[] {device, MemLocationType.HOST, MemLocationType.HOST_NUMA}) {
      for (int type : new int[] {pinned, MemAllocationType.MANAGED}) {
        long pool = driver.pools().memPoolCreate(new PoolProperties(type, 0, location, 0, 0));
        long block = driver.ordered().memAllocFromPoolAsync(0, 1024, pool, one);
        read(block, one);
        assertThat(reports)
            .as("place %d, type %d", location, type)
            .extracting(SanitizerReport::misuse)
            .isEqualTo(
                location == device && type == pinned
                    ? List.of(Misuse.UNINITIALIZED_READ)
                    : List.of());
        reports.clear();
      }
    }
  }
}
