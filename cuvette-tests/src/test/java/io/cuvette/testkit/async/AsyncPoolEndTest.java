package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.PoolAttributes;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Forgetting;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** No pool of the driver is lost when its object ends early, or unseen. */
class AsyncPoolEndTest {

  @CudaTest
  void poolClosedWhileItsFirstMemoryIsTaken_losesNothing(Cuda cuda, ScriptedDriver driver) {
    AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    driver.answer(
        "memPoolCreate",
        call -> {
          Object handle = call.proceed();
          pool.close();
          return handle;
        });
    assertThatThrownBy(() -> pool.allocate(1)).isInstanceOf(IllegalStateException.class);
    assertThat(pools(driver)).isZero();
  }

  /** How many there are. */
  private static long pools(ScriptedDriver driver) {
    return driver.count("memPoolCreate") - driver.count("memPoolDestroy");
  }

  private static DeviceMemoryResource newResource(Cuda cuda) {
    return new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
  }

  private static AsyncMemoryPool borrowing(Cuda cuda, DeviceMemoryResource resource) {
    return new AsyncMemoryPool(
        cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(resource.handle())));
  }

  /** A driver that destroys it before may crash at a later synchronisation. */
  @CudaTest
  void poolOfAResource_isNotDestroyedBeforeAFreeOfWhoBorrowedIt(Cuda cuda, ScriptedDriver driver) {
    driver.answer("streamQuery", _ -> false);
    try (DeviceMemoryResource resource = newResource(cuda);
        AsyncMemoryPool pool = borrowing(cuda, resource);
        DeviceBuffer buffer = pool.allocate(UNIT)) {
      buffer.fill((byte) 1, cuda.currentStream());
    }
    assertThat(pools(driver)).isEqualTo(1);
    driver.unscript("streamQuery");
    cuda.currentStream().synchronize();
    assertThat(pools(driver)).isZero();
  }

  @CudaTest
  void poolOfAClosedResource_livesAsLongAsWhoBorrowedIt(Cuda cuda, ScriptedDriver driver) {
    DeviceMemoryResource resource = newResource(cuda);
    try (AsyncMemoryPool pool = borrowing(cuda, resource);
        DeviceBuffer buffer = pool.allocate(UNIT)) {
      resource.close();
      buffer.fill((byte) 1);
      pool.allocate(1024).close();
      assertThat(pools(driver)).isEqualTo(1);
    }
    cuda.currentStream().synchronize();
    assertThat(pools(driver)).isZero();
  }

  /** What a driver does that is asked about a pool that is gone is written nowhere. */
  @CudaTest
  void poolThatItsOwnerDestroyed_isNotAskedAbout(Cuda cuda, ScriptedDriver script) {
    script.note("memPoolGetAttribute", call -> Long.toHexString(call.number("pool")));
    CudaDriver driver = cuda.driver();
    long before = driver.pools().deviceGetMemPool(0);
    long handle = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    AsyncMemoryPool given =
        new AsyncMemoryPool(
            cuda,
            Choices.first(cuda, AsyncPoolChoice.ofHandle(handle)),
            AsyncPoolOptions.DEFAULTS.withThresholdRaised(false));
    driver.pools().deviceSetMemPool(0, handle);
    DeviceMemoryResource current = new DeviceMemoryResource(cuda.device(0));
    driver.pools().deviceSetMemPool(0, before);
    given.allocate(UNIT).close();
    current.allocate(UNIT).close();
    cuda.currentStream().synchronize();
    driver.pools().memPoolDestroy(handle);
    PoolAttributes attributes = current.attributes();
    given.close();
    current.close();
    assertThat(script.notes()).doesNotContain(Long.toHexString(handle));
    assertThatThrownBy(attributes::usedMemCurrent).isInstanceOf(IllegalStateException.class);
  }

  @CudaTest
  void poolThatCannotBeGone_tellsAtTheEnd(Cuda cuda) {
    DeviceMemoryResource current = new DeviceMemoryResource(cuda.device(0));
    AsyncMemoryPool byDefault = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault());
    DeviceMemoryResource owner = newResource(cuda);
    AsyncMemoryPool borrowing = borrowing(cuda, owner);
    List<PoolAttributes> all =
        List.of(
            current.attributes(),
            byDefault.attributes(),
            owner.attributes(),
            borrowing.attributes());
    for (AutoCloseable each : List.of(current, byDefault, owner, borrowing)) {
      assertThatCode(each::close).doesNotThrowAnyException();
    }
    for (PoolAttributes each : all) {
      assertThat(each.usedMemHigh()).isNotNegative();
    }
  }

  @CudaTest(tidy = false)
  void forgottenPool_isFound_andItsMemoryStaysValid(
      Subject subject, Cuda cuda, ScriptedDriver driver) throws InterruptedException {
    @Nullable DeviceBuffer[] buffer = new DeviceBuffer[1];
    Forgetting.of(
        () -> buffer[0] = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)).allocate(UNIT));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
    assertThat(subject.leaks()).singleElement().matches(leak -> leak.what().contains("New"));
    buffer[0].fill((byte) 1);
    buffer[0].close();
    cuda.device(0).synchronize();
    assertThat(pools(driver)).isZero();
  }

  /** There is nothing to lose: replacing an allocator without closing it is no leak. */
  @CudaTest(tidy = false)
  void forgottenPoolOfTheDevice_isNoLeak(Cuda cuda) throws InterruptedException {
    Forgetting.of(3, () -> new AsyncMemoryPool(cuda).toString());
    Forgetting.collect();
    assertThat(cuda.leaksFound()).isZero();
  }

  @CudaTest(tidy = false)
  void attributesAndPeers_keepTheirPool(Cuda cuda) throws InterruptedException {
    @Nullable PoolAttributes[] kept = new PoolAttributes[2];
    List<Set<CudaDevice>> peers = new ArrayList<>();
    Forgetting.of(() -> {
      var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
      kept[0] = resource.attributes();
      peers.add(
          new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS)
              .peerAccessibleBy());
      return kept[1] = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)).attributes();
    });
    Forgetting.collect();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(kept[0].releaseThreshold()).isEqualTo(Long.MAX_VALUE);
    assertThat(kept[1].releaseThreshold()).isEqualTo(Long.MAX_VALUE);
    assertThat(peers.getFirst()).isEmpty();
  }

  @CudaTest
  void closedPool_refusesEverything_andNamesItself(Cuda cuda) {
    AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    pool.allocate(1).close();
    cuda.currentStream().synchronize();
    var attributes = pool.attributes();
    pool.close();
    assertThat(pool.isClosed()).isTrue();
    for (Runnable call :
        List.<Runnable>of(
            () -> pool.allocate(1),
            () -> pool.allocate(0),
            pool::usedBytes,
            pool::totalBytes,
            pool::freeBytes,
            pool::freeAllBlocks,
            pool::limit,
            pool::attributes)) {
      assertThatThrownBy(call::run)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("AsyncMemoryPool")
          .hasMessageContaining("closed");
    }
    assertThat(attributes.usedMemCurrent()).as("as it was at the end").isNotNegative();
    assertThatThrownBy(attributes::resetUsedMemHigh)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  @CudaTest
  void bufferInUse_outlivesItsPool(Cuda cuda) {
    AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    Buffer buffer = pool.allocate(MIB);
    pool.close();
    buffer.fill((byte) 7);
    assertThat(Bytes.of(buffer)).containsOnly(7);
    buffer.close();
    cuda.device(0).synchronize();
  }
}
