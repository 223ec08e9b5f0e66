package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingOrdered;
import io.cuvette.instrument.ForwardingPools;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.driverpool.AttributesOfPool;
import io.cuvette.internal.driverpool.BorrowedPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.internal.session.Device;
import io.cuvette.sim.Attended;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When a pool of the driver keeps, gives back, waits and ends, as what is above it sees it. */
@Timeout(60)
class DriverPoolTest {
  private static final PoolProperties PROPERTIES =
      new PoolProperties(MemAllocationType.PINNED, 0, MemLocationType.DEVICE, 0, 0);

  private final List<String> calls = new ArrayList<>();
  private final AtomicInteger destroyed = new AtomicInteger();

  /** How many of the next destructions find no Java heap. */
  private final AtomicInteger withoutHeap = new AtomicInteger();

  /** What is done as memory is freed next. */
  private Runnable atFree = () -> {};

  /** What is done as the driver is asked about a pool next. */
  private Runnable atQuestion = () -> {};

  /** Whether the next attribute cannot be set. */
  private boolean refusesToSet;

  private @Nullable BusyDriver madeBusy;
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(Watched::new)
              .withDecorator(driver -> madeBusy = new BusyDriver(driver)));
  private final BusyDriver busy = Objects.requireNonNull(madeBusy);
  private final DriverPools pools = cuda.engine().driverPools();

  @AfterEach
  void close() {
    cuda.close();
  }

  private DriverPool made() {
    return MadePool.createKeeping(pools, PROPERTIES);
  }

  /** Its own stream is gone, so that nothing frees it in order. */
  @Test
  void memoryThatWaitsForAStream_isFreed_onceWhoIsShortHasWaitedForThat() {
    CudaDevice device = cuda.device(0);
    CudaStream gone = device.createStream(StreamOptions.NON_BLOCKING);
    CudaStream user = device.createStream(StreamOptions.NON_BLOCKING);
    var resource = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
    Buffer buffer = resource.allocate(1 << 20, gone);
    gone.synchronize();
    buffer.recordUse(user);
    busy.begin(user);
    gone.close();
    buffer.close();
    assertThat(resource.pool().memory().liveBytes()).isEqualTo(1 << 20);
    busy.finish(user);
    assertThat(resource.pool().memory().liveBytes()).isEqualTo(1 << 20);
    cuda.engine().awaitFrees(device.core());
    assertThat(resource.pool().memory().liveBytes()).isZero();
    resource.close();
  }

  /** As a wait for a stream releases what pools keep of it. */
  @Test
  void memoryThatWaitedForAStream_isGivenBackWithWhatIsIdle() {
    CudaStream gone = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    CudaStream user = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    Buffer buffer = MemoryResource.async().allocate(1 << 20, gone);
    gone.synchronize();
    buffer.recordUse(user);
    busy.begin(user);
    gone.close();
    buffer.close();
    pools.giveBackIdle(_ -> true);
    assertThat(calls).doesNotContain("memFreeAsync");
    busy.finish(user);
    pools.giveBackIdle(_ -> true);
    assertThat(calls).containsOnlyOnce("memFreeAsync");
    assertThat(pools.asyncMemory().liveBytes()).isZero();
  }

  @Test
  void memoryThatCannotBeFreedWithTheCuda_isToldToWhoClosesIt() {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    List<Buffer> open = List.of(resource.allocate(1 << 20), resource.allocate(1 << 20));
    atFree =
        () -> {
          throw new CudaException(CudaStatus.UNKNOWN, "cuMemFreeAsync", "on purpose");
        };
    assertThatThrownBy(cuda::close)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("on purpose");
    assertThat(open).allMatch(Buffer::isClosed);
  }

  @Test
  void poolKeepsNothingIdle_whileAnAllocationIsShort_orOnceItIsClosed() {
    DriverPool pool = made();
    assertThat(pool.canKeep()).isTrue();
    assertThat(pools.whileShort(pool::canKeep)).isFalse();
    assertThat(pool.canKeep()).isTrue();
    pool.close();
    assertThat(pool.canKeep()).isFalse();
  }

  @Test
  void closedPool_isDestroyed_whenTheLastMappingLetsItGo() {
    DriverPool pool = made();
    pool.hold();
    pool.hold();
    pool.close();
    pool.release();
    assertThat(destroyed).hasValue(0);
    pool.release();
    assertThat(destroyed).hasValue(1);
    assertThat(pools.hasRetired()).isFalse();
  }

  /** It would be destroyed under the thread. */
  @Test
  void closedPool_isDestroyed_whenTheLastThreadThatTalksAboutItLeaves() {
    DriverPool pool = made();
    pool.enter();
    pool.enter();
    pool.close();
    pool.leave();
    pools.poll();
    assertThat(destroyed).hasValue(0);
    pool.leave();
    assertThat(destroyed).hasValue(1);
    assertThatThrownBy(pool::enter).isInstanceOf(IllegalStateException.class);
    assertThat(destroyed).hasValue(1);
  }

  /** A driver that destroys it before crashes at some later call. */
  @Test
  void poolWhoseMemoryWasFreedThroughAnother_isDestroyedOnceThatIsDone_andOthersAtOnce() {
    DriverPool pool = made();
    DriverPool another = made();
    DriverPool open = made();
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    AsyncPoolChoice choice = AsyncPoolChoice.ofHandle(pool.handle());
    AsyncMemoryPool borrower = new AsyncMemoryPool(cuda, choice);
    busy.begin(stream);
    borrower.allocate(4096, stream).close();
    pool.close();
    assertThat(destroyed).as("as long as it is borrowed").hasValue(0);
    borrower.close();
    another.close();
    pools.poll();
    assertThat(destroyed).as("the other one").hasValue(1);
    busy.finish(stream);
    pools.poll();
    assertThat(destroyed).hasValue(2);
    open.close();
  }

  /** Nothing that is queued runs here before somebody waits. */
  @Test
  void closedPool_isDestroyed_onceWhoIsShortHasWaitedForWhatItsStreamsFree() {
    CudaOptions lazy = CudaOptions.simulated().withDevice("sim:pace=lazy,seed=0");
    try (Cuda another = Attended.only(Cuda.open(lazy))) {
      CudaDevice device = another.device(0);
      CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
      var resource = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
      resource.allocate(4096, stream).close();
      resource.close();
      another.engine().driverPools().poll();
      assertThat(another.engine().driverPools().hasRetired()).isTrue();
      another.engine().awaitFrees(device.core());
      assertThat(another.engine().driverPools().hasRetired()).isFalse();
    }
  }

  /** A driver gives the next pool of the same handle what this one had. */
  @Test
  void accessOfADevice_isTakenBeforeThePoolEnds_unlessItsMemoryIsThere() {
    Device device = CudaDevice.coreOf(cuda.device(0));
    for (int location : new int[] {MemLocationType.HOST, MemLocationType.DEVICE}) {
      PoolProperties properties =
          new PoolProperties(MemAllocationType.PINNED, 0, location, device.id(), 0);
      DriverPool pool = MadePool.createKeeping(pools, properties);
      pool.setAccess(List.of(device), MemAccessFlags.READ_WRITE);
      calls.clear();
      pool.close();
      assertThat(calls.contains("memPoolSetAccess"))
          .as("memory at %d", location)
          .isEqualTo(location == MemLocationType.HOST);
    }
  }

  /** Only of what was imported a driver reports nothing but that. */
  @Test
  void questionThatADriverRefuses_isNotExplainedAsOneAboutAnImport() {
    AttributesOfPool attributes = new AttributesOfPool(made());
    refusesToSet = true;
    assertThatThrownBy(() -> attributes.set(MemPoolAttribute.RELEASE_THRESHOLD, 1))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("on purpose")
        .hasMessageNotContaining("imported");
  }

  @Test
  void closedPoolWithoutMemory_isNotTrimmed_thoughSomebodyHoldsIt() {
    DriverPool pool = made();
    DriverPool open = made();
    pool.hold();
    pool.close();
    calls.clear();
    pools.trim();
    assertThat(calls).as("of the one that is open").containsExactly("memPoolTrimTo");
    open.close();
    pool.release();
  }

  @Test
  void threadThatTalksToTheDriver_isWaitedFor() throws InterruptedException {
    DriverPool pool = made();
    pool.enter();
    Thread waiting = Thread.ofPlatform().start(pools::awaitUsers);
    Await.until(() -> isAtRest(waiting) || !waiting.isAlive());
    assertThat(waiting.isAlive()).isTrue();
    pool.leave();
    waiting.join();
  }

  @Test
  void whatAnotherThreadIsGivingBack_isWaitedFor() throws InterruptedException {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    resource.allocate(4096, cuda.device(0).createStream()).close();
    List<Thread> waiting = new ArrayList<>();
    atFree =
        () -> {
          Thread other = Thread.ofPlatform().start(pools::giveBackAll);
          Await.until(() -> isAtRest(other) || !other.isAlive());
          assertThat(other.isAlive()).isTrue();
          waiting.add(other);
        };
    pools.giveBackIdle(_ -> true);
    waiting.getFirst().join();
  }

  @Test
  void whatIsIdleOnAnyStream_isGivenBackBeforeAllIsWaitedFor() {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    for (int i = 0; i < 2; i++) {
      resource.allocate(4096, cuda.device(0).createStream()).close();
    }
    calls.clear();
    pools.giveBackAll();
    assertThat(calls).containsExactly("memFreeAsync", "memFreeAsync");
  }

  /** Kept, it would keep the thread, and no other could free it in its order. */
  @Test
  void memoryOfAThreadsOwnStream_isNotKept() {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    Buffer buffer = resource.allocate(4096, cuda.device(0).perThreadStream());
    calls.clear();
    buffer.close();
    assertThat(calls).containsExactly("memFreeAsync");
  }

  private static boolean isAtRest(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING
        || thread.getState() == Thread.State.WAITING;
  }

  /** Nobody has it: who comes by destroys it. */
  @Test
  void poolThatCouldNotBeMade_norDestroyedForWantOfJavaHeap_isDestroyedLater() {
    DriverPool other = made();
    refusesToSet = true;
    withoutHeap.set(2);
    assertThatThrownBy(this::made).isInstanceOf(CudaException.class);
    assertThatThrownBy(pools::poll).isInstanceOf(OutOfMemoryError.class);
    assertThat(destroyed).hasValue(0);
    pools.poll();
    assertThat(destroyed).hasValue(1);
    assertThat(other.isClosed()).isFalse();
  }

  /** Its memory is freed by code that may be the user's, or have threads of the user beside it. */
  @Test
  void cudaThatIsEnding_hasNoPoolMadeNorAsked() {
    DriverPool other = made();
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    Buffer open = resource.allocate(1 << 20);
    List<Throwable> refused = new ArrayList<>();
    atFree =
        () -> {
          assertThat(other.isClosed()).isFalse();
          refused.add(catchThrowable(this::made));
          refused.add(catchThrowable(other::enter));
          refused.add(catchThrowable(() -> other.trimTo(0)));
        };
    cuda.close();
    assertThat(open.isClosed()).isTrue();
    assertThat(destroyed).as("those there were").hasValue(2);
    assertThat(refused)
        .hasSize(3)
        .allSatisfy(e ->
            assertThat(e).isInstanceOf(IllegalStateException.class).hasMessage("Cuda is closed"));
  }

  @Test
  void lastNumbersOfAPool_areWithoutWhatWasIdle() {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    CudaStream stream = cuda.device(0).createStream();
    resource.allocate(4096, stream).close();
    calls.clear();
    resource.close();
    assertThat(calls).startsWith("memFreeAsync", "memPoolGetAttribute");
  }

  /** Its handle may be of no pool any more. */
  @Test
  void borrowedPoolThatIsNotTheCurrentOneAnyMore_isForgotten_andNotAsked() {
    long handle = cuda.driver().pools().memPoolCreate(PROPERTIES);
    AtomicLong current = new AtomicLong(handle);
    DriverPool pool = BorrowedPool.borrow(pools, handle, current::get, true);
    assertThat(threshold(handle)).isEqualTo(MemPoolAttribute.KEEP_ALL);
    assertThat(pools.thresholds().before(handle)).isZero();
    current.set(0);
    pool.close();
    assertThat(threshold(handle)).as("as it was").isEqualTo(MemPoolAttribute.KEEP_ALL);
    assertThat(pools.thresholds().before(handle)).isEqualTo(MemPoolAttribute.KEEP_ALL);
    cuda.driver().pools().memPoolDestroy(handle);
  }

  private long threshold(long pool) {
    PoolCalls driver = cuda.driver().pools();
    return driver.memPoolGetAttribute(pool, MemPoolAttribute.RELEASE_THRESHOLD);
  }

  /** Who lets go of it is not who closes it. */
  @Test
  void openPool_staysAmongThePools_whoeverLetsGoOfIt() {
    DriverPool pool = made();
    List<Runnable> users =
        List.of(
            () -> {
              pool.hold();
              pool.release();
            },
            () -> {
              pool.enter();
              pool.leave();
            },
            () -> pool.setAccess(List.of(cuda.device(0).core()), 3),
            () -> new AttributesOfPool(pool).used(),
            pools::poll);
    for (Runnable user : users) {
      user.run();
      calls.clear();
      pools.trim();
      assertThat(calls).as("user %d", users.indexOf(user)).containsExactly("memPoolTrimTo");
      assertThat(pools.hasRetired()).isFalse();
    }
    pool.close();
    assertThat(destroyed).hasValue(1);
  }

  @Test
  void poolKeepsNothingIdle_onceItsCudaIsClosed() {
    DriverPool pool = made();
    cuda.engine().session().setClosed(true);
    assertThat(pool.canKeep()).isFalse();
    cuda.engine().session().setClosed(false);
    assertThat(pool.canKeep()).isTrue();
    pool.close();
  }

  /** The pool was open as the buffer's thread looked, and would never be destroyed. */
  @Test
  void memoryThatBecomesIdleAsItsPoolIsClosed_isGivenBack() {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    CudaStream stream = cuda.device(0).createStream();
    Buffer buffer = resource.allocate(4096, stream);
    calls.clear();
    atQuestion = () -> OnThreads.run(1, _ -> buffer.close());
    resource.close();
    assertThat(calls).containsOnlyOnce("memFreeAsync");
    stream.synchronize();
    pools.poll();
    assertThat(destroyed).hasValue(1);
    assertThat(pools.hasRetired()).isFalse();
  }

  private final class Watched extends ForwardingDriver {
    Watched(CudaDriver driver) {
      super(driver);
    }

    private final PoolCalls poolCalls =
        new ForwardingPools(delegate().pools()) {
          @Override
          public void memPoolSetAttribute(long pool, int attribute, long value) {
            if (refusesToSet) {
              refusesToSet = false;
              throw new CudaException(
                  CudaStatus.INVALID_VALUE, "cuMemPoolSetAttribute", "on purpose");
            }
            super.memPoolSetAttribute(pool, attribute, value);
          }

          @Override
          public long memPoolGetAttribute(long pool, int attribute) {
            calls.add("memPoolGetAttribute");
            Runnable now = atQuestion;
            atQuestion = () -> {};
            now.run();
            return super.memPoolGetAttribute(pool, attribute);
          }

          @Override
          public void memPoolSetAccess(long pool, int type, int[] locations, int... access) {
            calls.add("memPoolSetAccess");
            super.memPoolSetAccess(pool, type, locations, access);
          }

          @Override
          public void memPoolTrimTo(long pool, long bytes) {
            calls.add("memPoolTrimTo");
            super.memPoolTrimTo(pool, bytes);
          }

          @Override
          public void memPoolDestroy(long pool) {
            if (withoutHeap.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
              throw new OutOfMemoryError("on purpose");
            }
            super.memPoolDestroy(pool);
            destroyed.incrementAndGet();
          }
        };

    private final OrderedCalls orderedCalls =
        new ForwardingOrdered(delegate().ordered()) {
          @Override
          public void memFreeAsync(int device, long address, long stream) {
            calls.add("memFreeAsync");
            Runnable now = atFree;
            atFree = () -> {};
            now.run();
            super.memFreeAsync(device, address, stream);
          }
        };

    @Override
    public OrderedCalls ordered() {
      return orderedCalls;
    }

    @Override
    public PoolCalls pools() {
      return poolCalls;
    }
  }
}
