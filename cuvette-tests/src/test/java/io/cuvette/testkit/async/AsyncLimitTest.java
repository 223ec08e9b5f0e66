package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.AtOnce;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** The hard limit of stream-ordered pools. */
class AsyncLimitTest {
  private static final long BLOCK = 512;
  private static final int THREADS = 8;

  @CudaTest
  void allocationInTheDriver_countsAlready(
      ScriptedDriver driver, AsyncMemoryPool pool, CudaStream one, CudaStream two)
      throws Exception {
    pool.setLimit(MemoryLimit.ofBytes(BLOCK));
    try (ExecutorService thread = Executors.newSingleThreadExecutor();
        Hold hold = driver.hold("memAllocFromPoolAsync")) {
      Future<DeviceBuffer> first = thread.submit(() -> pool.allocate(1, one));
      hold.awaitBegun();
      assertThatThrownBy(() -> pool.allocate(1, two))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      hold.release();
      first.get().close();
      one.synchronize();
    }
  }

  /** It is not waited for memory that would not be enough. */
  @CudaTest(simulatedOnly = true)
  void moreThanTheLimit_isRefusedAtOnce(
      ScriptedDriver driver,
      Cuda cuda,
      AsyncMemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    CudaStream gone = cuda.device(0).createStream();
    pool.setLimit(MemoryLimit.ofBytes(BLOCK + 1));
    List<String> waits = List.of("eventSynchronize", "streamSynchronize");
    Buffer used = pool.allocate(BLOCK, gone);
    other.waitFor(gone);
    try (Gate gate = Gate.on(other)) {
      used.recordUse(other);
      gone.close();
      used.close();
      for (String wait : waits) {
        driver.answer(
            wait,
            call -> {
              gate.open(); // so that who waits goes on
              return call.proceed();
            });
      }
      List<Long> before = waits.stream().map(driver::count).toList();
      assertThatThrownBy(() -> pool.allocate(BLOCK + 1, stream))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(waits.stream().map(driver::count).toList()).isEqualTo(before);
    }
    pool.allocate(BLOCK, stream).close();
  }

  /** What any stream left idle counts at the limit, and is no reason to refuse. */
  @CudaTest
  void idleMemoryOfAnotherStream_makesRoomAtTheLimit(
      AsyncMemoryPool pool, CudaStream one, CudaStream other) {
    pool.setLimit(MemoryLimit.ofBytes(2 * BLOCK));
    for (CudaStream stream : List.of(one, other, one)) {
      try (Buffer all = pool.allocate(2 * BLOCK, stream)) {
        assertThat(all.byteSize()).isEqualTo(2 * BLOCK);
      }
    }
  }

  /** Whole blocks are counted, and given back, whatever was asked for. */
  @CudaTest(simulatedOnly = true)
  void partsOfBlocks_areCountedAsWhole_bothWays(
      ScriptedDriver driver, AsyncMemoryPool pool, CudaStream stream) {
    pool.setLimit(MemoryLimit.ofBytes(2 * BLOCK));
    for (int bytes : new int[] {1, (int) BLOCK - 1, (int) BLOCK + 1}) {
      pool.allocate(bytes, stream).close();
      long _ = pool.freeAllBlocks();
      driver.fail("memAllocFromPoolAsync", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(() -> pool.allocate(bytes, stream)).isInstanceOf(CudaException.class);
      driver.unscript("memAllocFromPoolAsync");
      try (Buffer one = pool.allocate(BLOCK, stream);
          Buffer other = pool.allocate(bytes % BLOCK, stream)) {
        assertThat(one.byteSize() + other.byteSize()).isEqualTo(BLOCK + bytes % BLOCK);
        assertThatThrownBy(() -> pool.allocate(1, stream))
            .isInstanceOf(OutOfDeviceMemoryException.class);
      }
      long _ = pool.freeAllBlocks();
    }
  }

  @CudaTest
  void manyThreads_neverHaveMoreThanTheLimit(Cuda cuda, ScriptedDriver driver, AsyncMemoryPool pool)
      throws Exception {
    AtomicLong most = peak(driver);
    pool.setLimit(MemoryLimit.ofBytes(4 * BLOCK));
    AtomicInteger given = new AtomicInteger();
    new AtOnce().run(6, _ -> given.addAndGet(allocateAndFree(cuda, pool)));
    assertThat(given.get()).isPositive();
    assertThat(most.get()).isBetween(BLOCK, 4 * BLOCK);
    cuda.device(0).synchronize();
    assertThat(pool.liveBytes()).isZero();
  }

  /** The most bytes that the driver had given out at once, in blocks of one size. */
  private static AtomicLong peak(ScriptedDriver driver) {
    AtomicLong live = new AtomicLong();
    AtomicLong most = new AtomicLong();
    driver.answer(
        "memAllocFromPoolAsync",
        call -> {
          most.accumulateAndGet(live.addAndGet(BLOCK), Math::max);
          try {
            return call.proceed();
          } catch (CudaException e) {
            live.addAndGet(-BLOCK);
            throw e;
          }
        });
    driver.answer(
        "memFreeAsync",
        call -> {
          live.addAndGet(-BLOCK);
          return call.proceed();
        });
    return most;
  }

  private static int allocateAndFree(Cuda cuda, AsyncMemoryPool pool) {
    int given = 0;
    try (CudaStream stream = cuda.device(0).createStream()) {
      for (int i = 0; i < 12; i++) { // beyond the limit each takes its time
        try (Buffer first = pool.allocate(BLOCK, stream)) {
          given++;
          try (Buffer second = pool.allocate(1, stream)) {
            assertThat(second.address()).isNotEqualTo(first.address());
          }
        } catch (OutOfDeviceMemoryException e) {
          assertThat(e.details().limitBytes()).isEqualTo(4 * BLOCK);
        }
      }
      stream.synchronize();
    }
    return given;
  }

  @CudaTest
  void refusedAllocations_areNotCounted(AsyncMemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(BLOCK));
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> pool.allocate(2 * BLOCK))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              e -> assertThat(e.details().step()).isEqualTo(RecoveryStep.LIMIT));
    }
    pool.allocate(BLOCK).close();
    pool.allocate(BLOCK).close();
    assertThat(pool.liveBytes()).isZero();
  }

  @CudaTest
  void allocationsTheDriverRefuses_areNotCounted(Cuda cuda, AsyncMemoryPool pool) {
    long tooMuch = 4 * cuda.device(0).totalBytes();
    pool.setLimit(MemoryLimit.ofBytes(tooMuch + BLOCK));
    assertThatThrownBy(() -> pool.allocate(tooMuch)).isInstanceOf(OutOfDeviceMemoryException.class);
    try (Buffer _ = pool.allocate(BLOCK)) {
      assertThat(pool.liveBytes()).isEqualTo(BLOCK);
    }
    cuda.currentStream().synchronize();
  }

  /** Its stream is gone, so that the driver gets it back when the work of the other one is done. */
  @CudaTest
  void memoryThatAnotherStreamUsesStill_isWaitedFor(
      Cuda cuda, ScriptedDriver driver, AsyncMemoryPool pool, @NonBlocking CudaStream busy) {
    pool.setLimit(MemoryLimit.ofBytes(MIB));
    CudaStream gone = cuda.device(0).createStream();
    Buffer used = pool.allocate(MIB, gone);
    busy.waitFor(gone);
    Gate gate = Gate.on(busy);
    used.recordUse(busy);
    gone.close();
    used.close();
    driver.answer(
        "eventSynchronize",
        call -> {
          gate.open(); // now that it is waited for
          return call.proceed();
        });
    pool.allocate(MIB).close();
    cuda.currentStream().synchronize();
  }

  /** No collection is needed for it, nor is anything else given up. */
  @CudaTest(simulatedOnly = true)
  void fullPool_takesFirstWhatAnotherStreamHasDoneWith(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream other) {
    var most = DeviceMemoryResourceOptions.DEFAULTS.withMaxBytes(MIB);
    try (DeviceMemoryResource resource = new DeviceMemoryResource(cuda.device(0), most)) {
      CudaStream gone = cuda.device(0).createStream();
      Buffer used = resource.allocate(MIB, gone);
      other.waitFor(gone);
      try (Gate _ = Gate.on(other)) {
        used.recordUse(other);
        gone.close();
        used.close();
      }
      cuda.driver().streams().streamSynchronize(0, other.handle());
      driver.note("memAllocFromPoolAsync");
      resource.allocate(MIB).close();
      assertThat(driver.notes()).as("refused once at most").hasSizeLessThanOrEqualTo(2);
    }
  }

  @CudaTest
  void limit_isSetWhileMemoryIsInUse(Cuda cuda, AsyncMemoryPool pool) {
    Buffer large = pool.allocate(4 * MIB);
    pool.setLimit(MemoryLimit.ofBytes(MIB));
    assertThat(pool.liveBytes()).as("what is live stays").isEqualTo(4 * MIB);
    assertThatThrownBy(() -> pool.allocate(1)).isInstanceOf(OutOfDeviceMemoryException.class);
    pool.allocate(0).close();
    large.close();
    pool.allocate(MIB).close();
    pool.setLimit(MemoryLimit.none());
    pool.allocate(4 * MIB).close();
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void limitLoweredBelowWhatIsIdle_isNotExceededByReusingIt(Cuda cuda, AsyncMemoryPool pool) {
    pool.allocate(MIB).close();
    Buffer large = pool.allocate(2 * MIB);
    pool.setLimit(MemoryLimit.ofBytes(MIB));
    large.close();
    assertThatThrownBy(() -> pool.allocate(2 * MIB)).isInstanceOf(OutOfDeviceMemoryException.class);
    pool.allocate(MIB).close();
    pool.allocate(MIB).close();
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void poolAtItsLimit_reusesWhatIsIdle(
      ScriptedDriver driver, AsyncMemoryPool pool, CudaStream stream) {
    pool.setLimit(MemoryLimit.ofBytes(BLOCK));
    pool.allocate(BLOCK, stream).close();
    driver.note("memFreeAsync", "memAllocFromPoolAsync");
    pool.allocate(BLOCK, stream).close();
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest
  void limits_areBytesOrAFraction_andNoLimitIsTheSameEverywhere(Cuda cuda, AsyncMemoryPool pool) {
    long total = cuda.device(0).totalBytes();
    assertThat(pool.limit()).isEqualTo(cuda.defaultMemoryPool().limit());
    pool.setLimit(MemoryLimit.ofFraction(0.25));
    assertThatThrownBy(() -> pool.allocate(total / 4 + 512))
        .isInstanceOfSatisfying(
            OutOfDeviceMemoryException.class,
            e -> assertThat(e.details().limitBytes()).isEqualTo(total / 4));
    pool.setLimit(MemoryLimit.ofBytes(4 * total));
    pool.allocate(MIB).close();
    pool.setLimit(MemoryLimit.ofBytes(0));
    assertThat(pool.limit()).isEqualTo(MemoryLimit.none());
    pool.setLimit(MemoryLimit.ofFraction(0));
    assertThat(pool.limit()).isEqualTo(MemoryLimit.none());
    assertThatThrownBy(() -> MemoryLimit.ofFraction(1.01))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("1.01");
    assertThatThrownBy(() -> MemoryLimit.ofBytes(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-1");
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void allocationThatFails_doesNotCount(Cuda cuda, ScriptedDriver driver, AsyncMemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(MIB));
    driver.fail("memAllocFromPoolAsync", CudaStatus.INVALID_VALUE, 1);
    assertThatThrownBy(() -> pool.allocate(MIB)).hasMessageContaining("scripted by the test");
    pool.allocate(MIB).close();
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void limit_isNotTheReleaseThreshold(AsyncMemoryPool pool) {
    pool.attributes().setReleaseThreshold(64 * MIB);
    pool.setLimit(MemoryLimit.ofBytes(MIB));
    assertThat(pool.attributes().releaseThreshold()).isEqualTo(64 * MIB);
    pool.attributes().setReleaseThreshold(0);
    assertThat(pool.limit()).isEqualTo(MemoryLimit.ofBytes(MIB));
  }

  @CudaTest(devices = 2)
  void everyDevice_hasALimitOfItsOwn(
      Cuda cuda, AsyncMemoryPool pool, @OnDevice(1) CudaStream other) {
    try (Scope _ = cuda.device(1).use()) {
      pool.setLimit(MemoryLimit.ofBytes(BLOCK));
    }
    assertThat(pool.limit()).isEqualTo(MemoryLimit.none());
    assertThat(pool.limit(cuda.device(1))).isEqualTo(MemoryLimit.ofBytes(BLOCK));
    pool.allocate(MIB).close();
    assertThatThrownBy(() -> pool.allocate(MIB, other))
        .isInstanceOfSatisfying(
            OutOfDeviceMemoryException.class, e -> assertThat(e.details().device()).isEqualTo(1));
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void driverBefore113_cannotTellBytes_andSaysSo(Subject subject, ScriptedDriver driver) {
    driver.answer("driverGetVersion", _ -> 11020);
    Cuda cuda = subject.cuda();
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      pool.setLimit(MemoryLimit.ofBytes(MIB));
      try (Buffer _ = pool.allocate(MIB)) {
        assertThatThrownBy(() -> pool.allocate(1))
            .isInstanceOfSatisfying(
                OutOfDeviceMemoryException.class,
                e -> assertThat(e.details().heldBytes()).isEqualTo(-1));
      }
      for (Runnable question :
          List.<Runnable>of(pool::usedBytes, pool::freeBytes, pool::totalBytes)) {
        assertThatThrownBy(question::run)
            .isInstanceOfSatisfying(
                CudaException.class,
                e -> assertThat(e.status()).isEqualTo(CudaStatus.CALL_REQUIRES_NEWER_DRIVER))
            .hasMessageContaining("CUDA 11.2 (expected: >= 11.3)");
      }
      assertThat(pool.attributes().toString()).contains("unknown");
      cuda.currentStream().synchronize();
    }
  }

  /** What other threads have closed is no reason to say that memory is out. */
  @CudaTest
  void threadsAtTheLimit_neverMissWhatIsIdle(Cuda cuda, AsyncMemoryPool pool) throws Exception {
    pool.setLimit(MemoryLimit.ofBytes(THREADS * MIB));
    holdOneEach(cuda, pool);
    assertThat(pool.liveBytes()).isZero();
  }

  /** A GPU cuts the memory of a pool, so that not all of it need fit. */
  @CudaTest(simulatedOnly = true)
  void threadsAtTheSizeOfAPool_neverMissWhatIsIdle(Cuda cuda) throws Exception {
    var most = DeviceMemoryResourceOptions.DEFAULTS.withMaxBytes(THREADS * MIB);
    try (DeviceMemoryResource resource = new DeviceMemoryResource(cuda.device(0), most)) {
      holdOneEach(cuda, resource);
    }
  }

  /** No two allocations of a thread have the same size, so none takes what is idle. */
  private static void holdOneEach(Cuda cuda, MemoryResource resource) throws Exception {
    new AtOnce()
        .run(
            THREADS,
            _ -> {
              try (CudaStream stream = cuda.device(0).createStream()) {
                for (int i = 0; i < 500; i++) {
                  resource.allocate(MIB - BLOCK * (i % 100), stream).close();
                }
              }
            });
  }

  @CudaTest
  void limit_isHard_andCountsWhatIsLive(AsyncMemoryPool pool) {
    assertThat(pool.limit()).isEqualTo(MemoryLimit.none());
    pool.setLimit(MemoryLimit.ofBytes(1024));
    try (Buffer _ = pool.allocate(UNEVEN)) {
      assertThatThrownBy(() -> pool.allocate(1))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              e -> {
                assertThat(e.details().limitBytes()).isEqualTo(1024);
                assertThat(e.requestedBytes()).isEqualTo(1);
                assertThat(e.details().freeBlocks()).isEqualTo(-1); // the driver does not tell
                assertThat(e)
                    .hasMessageContainingAll(
                        "in unknown blocks", "largest free=unknown", "streams=unknown", "=1024");
              });
    }
    pool.allocate(12).close(); // refused by pools whose limit is the reserve of 32 MiB
    pool.setLimit(MemoryLimit.ofFraction(0.5));
    assertThat(pool.limit()).isEqualTo(MemoryLimit.ofFraction(0.5));
  }
}
