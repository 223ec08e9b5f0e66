package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.PoolAttributes;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** No pool of the driver is lost when its object ends early, or unseen. */
class AsyncPoolEndTest {

  /** Counts pools, and does something while one is being made. */
  private static final class Making extends ForwardingDriver {
    private final AtomicInteger live = new AtomicInteger();
    private Runnable meanwhile = () -> {};
    private boolean busy;
    private final Set<Long> asked = ConcurrentHashMap.newKeySet();

    Making(CudaDriver driver) {
      super(driver);
    }

    @Override
    public long memPoolCreate(PoolProperties properties) {
      long pool = super.memPoolCreate(properties);
      live.incrementAndGet();
      meanwhile.run();
      return pool;
    }

    @Override
    public long memPoolGetAttribute(long pool, int attribute) {
      asked.add(pool);
      return super.memPoolGetAttribute(pool, attribute);
    }

    @Override
    public boolean streamQuery(int device, long stream) {
      return !busy && super.streamQuery(device, stream);
    }

    @Override
    public void memPoolDestroy(long pool) {
      super.memPoolDestroy(pool);
      live.decrementAndGet();
    }
  }

  @CudaTest
  void poolClosedWhileItsFirstMemoryIsTaken_losesNothing(Subject subject) {
    @Nullable Making[] driver = new Making[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> driver[0] = new Making(d)));
    AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    driver[0].meanwhile = pool::close;
    assertThatThrownBy(() -> pool.allocate(1)).isInstanceOf(IllegalStateException.class);
    assertThat(driver[0].live).hasValue(0);
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
  void poolOfAResource_isNotDestroyedBeforeAFreeOfWhoBorrowedIt(Subject subject) {
    @Nullable Making[] driver = new Making[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> driver[0] = new Making(d)));
    driver[0].busy = true;
    try (DeviceMemoryResource resource = newResource(cuda);
        AsyncMemoryPool pool = borrowing(cuda, resource);
        DeviceBuffer buffer = pool.allocate(512)) {
      buffer.fill((byte) 1, cuda.currentStream());
    }
    assertThat(driver[0].live).hasValue(1);
    driver[0].busy = false;
    cuda.currentStream().synchronize();
    assertThat(driver[0].live).hasValue(0);
  }

  @CudaTest
  void poolOfAClosedResource_livesAsLongAsWhoBorrowedIt(Subject subject) {
    @Nullable Making[] driver = new Making[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> driver[0] = new Making(d)));
    DeviceMemoryResource resource = newResource(cuda);
    try (AsyncMemoryPool pool = borrowing(cuda, resource);
        DeviceBuffer buffer = pool.allocate(512)) {
      resource.close();
      buffer.fill((byte) 1);
      pool.allocate(1024).close();
      assertThat(driver[0].live).hasValue(1);
    }
    cuda.currentStream().synchronize();
    assertThat(driver[0].live).hasValue(0);
  }

  /** What a driver does that is asked about a pool that is gone is written nowhere. */
  @CudaTest
  void poolThatItsOwnerDestroyed_isNotAskedAbout(Subject subject) {
    @Nullable Making[] made = new Making[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> made[0] = new Making(d)));
    CudaDriver driver = cuda.driver();
    long before = driver.deviceGetMemPool(0);
    long handle = driver.memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    AsyncMemoryPool given =
        new AsyncMemoryPool(
            cuda,
            Choices.first(cuda, AsyncPoolChoice.ofHandle(handle)),
            AsyncPoolOptions.DEFAULTS.withThresholdRaised(false));
    driver.deviceSetMemPool(0, handle);
    DeviceMemoryResource current = new DeviceMemoryResource(cuda.device(0));
    driver.deviceSetMemPool(0, before);
    given.allocate(512).close();
    current.allocate(512).close();
    cuda.currentStream().synchronize();
    driver.memPoolDestroy(handle);
    PoolAttributes attributes = current.attributes();
    given.close();
    current.close();
    assertThat(made[0].asked).doesNotContain(handle);
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
  void forgottenPool_isFound_andItsMemoryStaysValid(Subject subject) throws InterruptedException {
    @Nullable Making[] driver = new Making[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> driver[0] = new Making(d)));
    @Nullable DeviceBuffer[] buffer = new DeviceBuffer[1];
    Forgetting.of(
        () -> buffer[0] = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)).allocate(512));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
    assertThat(subject.leaks()).singleElement().matches(leak -> leak.what().contains("New"));
    buffer[0].fill((byte) 1);
    buffer[0].close();
    cuda.device(0).synchronize();
    assertThat(driver[0].live).hasValue(0);
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
}
