package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.AtOnce;
import io.cuvette.testkit.support.HostBooks;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.AttributeNotFoundException;
import javax.management.JMException;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.opentest4j.TestAbortedException;

/** What the limit of a pinned pool counts is what upstream gave and what the pool can reach. */
@Timeout(60)
class PinnedBooksTest {
  private static final int THREADS = 4;
  private static final int STEPS = 150;
  private static final int LARGEST = 64 << 10;

  /** One buffer for each thread, each in a class of its own. */
  private static final long LIMIT = (long) THREADS * LARGEST;

  private static final int MANY = 1 << 16;

  private final AtOnce threads = new AtOnce();

  @Test
  void threadsAtTheLimit_loseNothing_andNeverExceedIt() throws InterruptedException {
    HostBooks driver = new HostBooks(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
        PinnedMemoryPool pool = limited(cuda, LIMIT)) {
      Runnable check =
          () -> {
            pool.assertConsistent();
            assertThat(driver.liveBytes()).isLessThanOrEqualTo(LIMIT);
          };
      threads.run(THREADS, seed -> use(cuda, pool, new SplittableRandom(seed), check));
      cuda.device(0).synchronize();
      pool.assertConsistent();
      assertThat(pool.usedBytes()).isZero();
      long held = driver.liveBytes();
      assertThat(pool.totalBytes()).isEqualTo(held);
      assertThat(pool.freeAllBlocks()).isEqualTo(held);
      assertThat(driver.liveBytes()).isZero();
    }
  }

  /** Checks after each step, beside those of the others. */
  private static void use(
      Cuda cuda, PinnedMemoryPool pool, SplittableRandom random, Runnable check) {
    try (CudaStream stream = cuda.device(0).createStream()) {
      for (int i = 0; i < STEPS; i++) {
        PinnedBuffer buffer = pool.allocate(1 + random.nextInt(LARGEST));
        if (random.nextBoolean()) {
          buffer.fill((byte) i, stream);
        }
        buffer.close();
        if (i % 32 == 0) {
          pool.freeAllBlocks();
        }
        check.run();
      }
    }
  }

  @Test
  void poolsClosedBesideAllocations_giveAllBack() throws InterruptedException {
    HostBooks driver = new HostBooks(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver))) {
      for (int round = 0; round < 50; round++) {
        PinnedMemoryPool pool = limited(cuda, LIMIT);
        int first = round * THREADS;
        threads.run(THREADS, seed -> useUntilClosed(pool, new SplittableRandom(first + seed)));
        pool.assertConsistent();
        assertThat(pool.totalBytes()).isZero();
        assertThat(driver.liveBytes()).isZero();
      }
    }
  }

  private static void useUntilClosed(PinnedMemoryPool pool, SplittableRandom random) {
    int closing = random.nextInt(40);
    for (int i = 0; i < 40; i++) {
      try (PinnedBuffer buffer = pool.allocate(1 + random.nextInt(LARGEST))) {
        assertThat(buffer.isClosed()).isFalse();
      } catch (IllegalStateException e) {
        assertThat(e).hasMessageContaining("is closed");
        return;
      }
      if (i == closing) {
        pool.close();
      }
    }
  }

  /** Whoever allocates while a free is under way must not get the same bytes of the limit. */
  @Test
  void memoryThatTheDriverIsFreeing_countsAsHeld() throws InterruptedException {
    HostBooks books = new HostBooks(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    ScriptedDriver driver = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver.over(books)));
        PinnedMemoryPool pool = limited(cuda, LIMIT)) {
      pool.allocate(LIMIT).close();
      Hold hold = driver.hold("memFreeHost");
      Thread releasing = threads.start(pool::freeAllBlocks);
      try {
        hold.awaitBegun();
        assertThat(pool.totalBytes()).isEqualTo(LIMIT);
        Thread allocating = threads.start(() -> pool.allocate(LIMIT).close());
        while (allocating.getState() == Thread.State.RUNNABLE) {
          pool.assertConsistent();
          assertThat(books.liveBytes()).isLessThanOrEqualTo(LIMIT);
        }
        hold.release();
        allocating.join();
      } finally {
        hold.release();
        releasing.join();
      }
      threads.assertNoFailures();
      assertThat(books.mostBytes()).isEqualTo(LIMIT);
    }
  }

  /** Nothing else would bring it: there is no collection that takes its time. */
  @Test
  void memoryThatTheDriverIsFreeing_isWaitedFor() throws InterruptedException {
    ScriptedDriver driver = new ScriptedDriver();
    CudaOptions options = CudaOptions.simulated().withLeakLevel(LeakLevel.OFF);
    try (Cuda cuda = Cuda.open(options.withDecorator(driver::over));
        PinnedMemoryPool pool = limited(cuda, LIMIT);
        Hold hold = driver.hold("memFreeHost")) {
      pool.allocate(LIMIT).close();
      Thread releasing = threads.start(pool::freeAllBlocks);
      hold.awaitBegun();
      Thread allocating = threads.start(() -> pool.allocate(LIMIT).close());
      assertThat(allocating.join(Duration.ofMillis(50))).as("it has ended").isFalse();
      hold.release();
      releasing.join();
      allocating.join();
      threads.assertNoFailures();
      assertThat(pool.stats().outOfMemories()).isZero();
    }
  }

  @Test
  void freeThatFails_isTriedAgain_andNothingIsLost() {
    HostBooks driver = new HostBooks(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
        PinnedMemoryPool pool = new PinnedMemoryPool(cuda)) {
      for (int i = 1; i <= 8; i++) {
        pool.allocate(i * 4096).close();
      }
      driver.refuseFrees(3);
      assertThatThrownBy(pool::freeAllBlocks).isInstanceOf(CudaException.class);
      pool.assertConsistent();
      assertThat(pool.totalBytes()).isZero();
      assertThat(cuda.leaksFound()).isZero();
      assertThat(driver.liveBytes()).isZero();
      pool.allocate(4096).close();
      pool.assertConsistent();
    }
  }

  /** Two slices are two objects, and one memory. */
  @CudaTest(tidy = false)
  void memoryThatOverlapsWhatThePoolHas_isRefused(Cuda cuda) {
    try (PinnedBuffer all = cuda.directPinned().allocate(8192)) {
      List<PinnedBuffer> given =
          new ArrayList<>(
              List.of(
                  all.slice(1024, 512),
                  all.slice(0, 1024),
                  all.slice(1024, 512),
                  all.slice(512, 1024),
                  all.slice(1024 + 256, 512),
                  all.slice(512, 2048),
                  all.slice(1536, 512)));
      PinnedMemoryPool pool =
          new PinnedMemoryPool(
              cuda, PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> given.removeFirst()));
      PinnedBuffer first = pool.allocate(UNIT);
      pool.allocate(1024); // ends where the first begins
      for (int bytes : new int[] {512, 1024, 512, 2048}) {
        assertThatThrownBy(() -> pool.allocate(bytes))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("again, or a part of it");
      }
      pool.allocate(UNIT); // begins where the first ends
      assertThat(pool.totalBytes()).isEqualTo(2048);
      pool.assertConsistent();
      first.close();
      pool.freeAllBlocks();
      given.add(all.slice(1024, 512));
      assertThat(pool.allocate(UNIT).address()).isEqualTo(all.address() + 1024);
      pool.assertConsistent();
    }
  }

  @CudaTest
  void cacheOfAnotherPool_makesRoomInTheDriver(Cuda cuda, PinnedMemoryPool one) {
    List<PinnedBuffer> out = new ArrayList<>();
    PinnedPoolOptions options =
        PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> {
          if (one.totalBytes() > 0) {
            throw new CudaException(CudaStatus.OUT_OF_MEMORY, "host()", "one at a time");
          }
          out.add(cuda.directPinned().allocate(bytes));
          return out.getLast();
        });
    one.allocate(4096).close();
    try (PinnedMemoryPool other = new PinnedMemoryPool(cuda, options);
        Buffer buffer = other.allocate(UNIT)) {
      assertThat(buffer.byteSize()).isEqualTo(512);
    }
  }

  /** Neither a list that grows under the lock, however many blocks there are. */
  @Test
  void closingManyBuffers_needsNoJavaHeap() throws JMException {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        PinnedBuffer all = cuda.directPinned().allocate(MANY * 512)) {
      AtomicLong given = new AtomicLong();
      PinnedMemoryPool pool =
          new PinnedMemoryPool(
              cuda,
              PinnedPoolOptions.DEFAULTS.withUpstream(
                  bytes -> all.slice(given.getAndAdd(bytes), bytes)));
      PinnedBuffer[] buffers = new PinnedBuffer[MANY];
      for (int i = 0; i < MANY; i++) {
        buffers[i] = pool.allocate(UNIT);
      }
      long before = allocatedBytes();
      for (PinnedBuffer buffer : buffers) {
        buffer.close();
      }
      assertThat(allocatedBytes() - before).isLessThan(MANY);
      assertThat(pool.freeBlocks()).isEqualTo(MANY);
      pool.assertConsistent();
    }
  }

  /** Of this thread so far; the test is skipped where that is not told. */
  private static long allocatedBytes() throws JMException {
    try {
      return (Long)
          ManagementFactory.getPlatformMBeanServer()
              .getAttribute(
                  new ObjectName(ManagementFactory.THREAD_MXBEAN_NAME),
                  "CurrentThreadAllocatedBytes");
    } catch (AttributeNotFoundException e) {
      throw new TestAbortedException("the runtime does not count what threads allocate", e);
    }
  }

  private static PinnedMemoryPool limited(Cuda cuda, long bytes) {
    return new PinnedMemoryPool(
        cuda, PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(bytes)));
  }
}
