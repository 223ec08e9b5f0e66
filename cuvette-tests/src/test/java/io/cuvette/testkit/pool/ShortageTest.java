package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.POOL_STEP;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.AtOnce;
import io.cuvette.testkit.support.Graph;
import io.cuvette.testkit.support.OneChunk;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.FutureTask;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Out of memory is the truth: no error while memory is there for whoever waits or collects. */
class ShortageTest {
  private static final int THREADS = 6;
  private static final int STEPS = 300;
  private static final int BLOCK = 4 << 10;
  private static final long DROPPED_LIMIT = 256 * BLOCK;

  private final AtOnce threads = new AtOnce();

  /** There is a block for each thread, in one chunk that cannot be released. */
  @CudaTest(sanitized = false)
  void threadsWithBusyStreams_allGetWhatIsThere(Cuda cuda, @NonBlocking CudaStream shared)
      throws InterruptedException {
    long limit = (long) THREADS * BLOCK + 512;
    try (MemoryPool pool = limited(cuda, limit)) {
      pool.allocate(limit, shared).close();
      try (Buffer _ = pool.allocate(UNIT, shared)) {
        threads.run(THREADS, seed -> useBusily(cuda, pool, shared, new SplittableRandom(seed)));
      }
      cuda.device(0).synchronize();
      pool.assertConsistent();
      assertThat(pool.usedBytes()).isZero();
    }
  }

  private static void useBusily(
      Cuda cuda, MemoryPool pool, CudaStream shared, SplittableRandom random) {
    try (CudaStream own = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      for (int i = 0; i < STEPS; i++) {
        CudaStream stream = random.nextBoolean() ? own : shared;
        try (Buffer buffer = pool.allocate(BLOCK, stream)) {
          buffer.fill((byte) i, stream);
        }
      }
    }
  }

  /** It cannot be waited for: nobody knows when the work before is done. */
  @CudaTest(simulatedOnly = true)
  void memoryOfAStreamThatCaptures_isNotTaken_howeverShortItIs(
      Cuda cuda, @NonBlocking CudaStream capturing, @NonBlocking CudaStream other) {
    try (MemoryPool pool = limited(cuda, BLOCK + 512)) {
      pool.allocate(BLOCK + 512, capturing).close();
      try (Buffer _ = pool.allocate(UNIT, capturing); // the chunk is not released
          Gate _ = Gate.on(capturing)) {
        try (Buffer buffer = pool.allocate(BLOCK, capturing)) {
          buffer.fill((byte) 1, capturing);
        }
        Graph.of(
                capturing,
                () ->
                    assertThatThrownBy(() -> pool.allocate(BLOCK, other))
                        .isInstanceOf(OutOfDeviceMemoryException.class))
            .close();
      }
      capturing.synchronize();
      pool.allocate(BLOCK, other).close();
    }
  }

  @CudaTest(tidy = false)
  void threadThatDropsAllBuffers_getsNoErrors(Cuda cuda) throws InterruptedException {
    try (MemoryPool pool = limited(cuda, DROPPED_LIMIT)) {
      assertDropped(1, 1000, _ -> pool.allocate(BLOCK));
    }
  }

  @CudaTest(tidy = false)
  void threadsThatDropAllBuffers_getNoErrors(Cuda cuda) throws InterruptedException {
    try (MemoryPool pool = limited(cuda, DROPPED_LIMIT)) {
      assertDropped(THREADS, 200, _ -> pool.allocate(BLOCK));
    }
  }

  /** They come back when the stream that used them has done its work. */
  @CudaTest(tidy = false, sanitized = false)
  void threadsThatDropBuffersInUse_getNoErrors(Cuda cuda, CudaStream other)
      throws InterruptedException {
    try (MemoryPool pool = limited(cuda, DROPPED_LIMIT)) {
      assertDropped(
          THREADS,
          200,
          seed -> {
            Buffer buffer = pool.allocate(BLOCK);
            buffer.fill((byte) seed, other);
            return buffer;
          });
    }
  }

  @CudaTest(tidy = false)
  void threadsThatDropBuffersOfTheDriversPool_getNoErrors(Cuda cuda) throws InterruptedException {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      pool.setLimit(MemoryLimit.ofBytes(DROPPED_LIMIT));
      assertDropped(THREADS, 200, _ -> pool.allocate(BLOCK));
    }
  }

  private void assertDropped(int count, int buffers, LongFunction<Buffer> allocate)
      throws InterruptedException {
    threads.run(
        count,
        seed -> {
          for (int i = 0; i < buffers; i++) {
            assertThat(allocate.apply(seed).byteSize()).isEqualTo(BLOCK);
          }
        });
  }

  @CudaTest
  void upstreamsLastRefusal_isTheCause_andItIsNotAskedForNothing(Subject subject) {
    List<CudaException> refusals = new ArrayList<>();
    PoolOptions options =
        PoolOptions.DEFAULTS.withUpstream((bytes, stream) -> {
          String text = "quota of team 7, refusal " + refusals.size();
          refusals.add(new CudaException(CudaStatus.OUT_OF_MEMORY, "team(" + bytes + ")", text));
          throw refusals.getLast();
        });
    // Without the collector, after each run of which it would be asked again.
    try (Cuda cuda = subject.open(defaults -> defaults.withLeakLevel(LeakLevel.OFF));
        MemoryPool pool = new MemoryPool(cuda, options)) {
      var e = catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(UNIT));
      assertThat(e).hasCause(refusals.getLast());
      assertThat(e.getSuppressed())
          .containsExactlyElementsOf(refusals.subList(0, refusals.size() - 1));
      assertThat(refusals).as("at first, and when everything was tried").hasSize(2);
    }
  }

  /** The listener says that it gave nothing, and the driver has more, or less, all the same. */
  @ParameterizedTest
  @CsvSource({"true, 3", "false, 2"})
  @Tag("simulated")
  void upstreamIsAskedAgain_ifTheDriverHasMoreThanAtItsRefusal(boolean frees, int asks) {
    List<CudaException> refusals = new ArrayList<>();
    PoolOptions options =
        PoolOptions.DEFAULTS.withUpstream((bytes, stream) -> {
          refusals.add(new CudaException(CudaStatus.OUT_OF_MEMORY, "team()", "quota of team 7"));
          throw refusals.getLast();
        });
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.OFF));
        MemoryPool pool = new MemoryPool(cuda, options)) {
      var memory = cuda.driver().memory();
      long first = memory.memAlloc(0, POOL_STEP);
      var _ =
          pool.addPressureListener((device, needed) -> {
            if (frees) {
              memory.memFree(0, first);
            } else {
              long _ = memory.memAlloc(0, POOL_STEP);
            }
            return 0;
          });
      assertThatThrownBy(() -> pool.allocate(UNIT)).isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(refusals).hasSize(asks);
    }
  }

  /** Another thread gives it back just now: the limit has room once the driver has it. */
  @Test
  @Tag("simulated")
  void memoryOnItsWayToTheDriver_isWaitedFor_ifTheLimitIsShort() throws Exception {
    try (ScriptedDriver script = new ScriptedDriver();
        Cuda cuda =
            Cuda.open(
                CudaOptions.simulated()
                    .withDecorator(script::over)
                    .withLeakLevel(LeakLevel.OFF)); // without the collector, which waits too
        MemoryPool pool = limited(cuda, 4 * UNIT)) {
      pool.allocate(4 * UNIT).close();
      Hold hold = script.hold("memFree");
      Thread freeing = Thread.ofPlatform().start(pool::freeAllBlocks);
      hold.awaitBegun();
      FutureTask<Long> allocated =
          new FutureTask<>(() -> {
            try (Buffer buffer = pool.allocate(4 * UNIT)) {
              return buffer.byteSize();
            }
          });
      Thread allocating = Thread.ofPlatform().start(allocated);
      while (allocating.isAlive() && allocating.getState() != Thread.State.TIMED_WAITING) {
        Thread.onSpinWait();
      }
      hold.release();
      assertThat(allocated.get()).isEqualTo(4 * UNIT);
      freeing.join();
    }
  }

  /** It helps no device, and its stream may take long. */
  @CudaTest(memory = "64MiB", simulatedOnly = true)
  void memoryOfTheHostOnItsWay_isNotWaitedFor_ifADeviceIsShort(
      Cuda cuda, @NonBlocking CudaStream other) {
    PinnedMemoryPool closed = new PinnedMemoryPool(cuda);
    PinnedBuffer used = closed.allocate(UNIT);
    try (Buffer target = MemoryResource.direct().allocate(UNIT, other);
        Gate _ = Gate.on(other)) {
      used.copyTo(target, other);
      used.close();
      closed.close();
      assertThatThrownBy(() -> cuda.allocate(128 << 20))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(other.isDone()).isFalse();
    }
    cuda.device(0).synchronize();
  }

  @CudaTest
  void refusalThatIsAlwaysTheSameObject_isTheCause(Cuda cuda) {
    var refusal = new CudaException(CudaStatus.OUT_OF_MEMORY, "team()", "quota of team 7");
    PoolOptions options =
        PoolOptions.DEFAULTS.withUpstream((bytes, stream) -> {
          throw refusal;
        });
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      var e = catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(UNIT));
      assertThat(e).hasCause(refusal);
      assertThat(e.getSuppressed()).isEmpty();
    }
  }

  @CudaTest
  void upstreamThatHasMemoryAfterARelease_isAskedAgain(Cuda cuda) {
    OneChunk upstream = new OneChunk(cuda);
    PoolOptions options = PoolOptions.DEFAULTS.withUpstream(upstream);
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      pool.allocate(UNIT).close();
      pool.allocate(1024).close();
      assertThat(upstream.count()).isEqualTo(2);
    }
  }

  private static MemoryPool limited(Cuda cuda, long bytes) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(bytes)));
  }
}
