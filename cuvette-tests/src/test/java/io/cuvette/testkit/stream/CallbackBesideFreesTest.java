package io.cuvette.testkit.stream;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Latches;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.junit.jupiter.api.Timeout;

/**
 * Callbacks that allocate beside threads that free, on a driver that lets nobody in while it waits
 * for all streams, as that of a GPU.
 */
class CallbackBesideFreesTest {
  private static final int ROUNDS = 150;
  private static final int FREEING = 2;
  private static final long PATIENCE_SECONDS = 40;
  private static final long ENTRY_NANOS = 100_000;

  /** Well before those who wait for each other would be let go. */
  private static final long SOON_NANOS = 9_000_000_000L;

  private static final int FREED = 3;

  /** Waits in frees for all work, and has every other call about memory wait for that. */
  private static final class LockingDriver extends ForwardingDriver {
    private final ReentrantLock lock = new ReentrantLock();

    LockingDriver(CudaDriver driver) {
      super(driver);
    }

    private <T> T alone(Supplier<T> call) {
      lock.lock();
      try {
        return call.get();
      } finally {
        lock.unlock();
      }
    }

    private void alone(Runnable call) {
      boolean _ =
          alone(() -> {
            call.run();
            return true;
          });
    }

    private final MemoryCalls memoryCalls =
        new ForwardingMemory(delegate().memory()) {
          @Override
          public long memAlloc(int device, long bytes) {
            return alone(() -> super.memAlloc(device, bytes));
          }

          @Override
          public void memFree(int device, long address) {
            LockSupport.parkNanos(
                ENTRY_NANOS); // so that callbacks come between the look and the call
            alone(() -> super.memFree(device, address));
          }

          @Override
          public MemorySegment memHostAlloc(int device, long bytes, int flags) {
            return alone(() -> super.memHostAlloc(device, bytes, flags));
          }

          @Override
          public void memFreeHost(int device, long address) {
            alone(() -> super.memFreeHost(device, address));
          }
        };

    @Override
    public MemoryCalls memory() {
      return memoryCalls;
    }
  }

  @CudaTest
  @Timeout(300)
  void callbacksThatAllocate_areNotHeldUpByFreesThatWaitForThem(Subject subject) throws Exception {
    Cuda cuda = subject.open(options -> options.withDecorator(LockingDriver::new));
    try (CudaStream stream = cuda.device(0).createStream()) {
      List<CompletableFuture<Void>> all = new ArrayList<>();
      for (int i = 0; i < FREEING; i++) {
        all.add(CompletableFuture.runAsync(() -> free(cuda), Thread.ofPlatform()::start));
      }
      for (int i = 0; i < ROUNDS; i++) {
        stream.addCallback(() -> use(cuda)).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (i % 10 == 0) {
          cuda.device(0).synchronize();
        }
      }
      CompletableFuture.allOf(all.toArray(CompletableFuture[]::new))
          .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
      assertThat(all).allMatch(CompletableFuture::isDone);
    }
  }

  /** Without a gap between them nothing is freed, and nobody waits long for one. */
  @CudaTest
  @Timeout(300)
  void callbacksOfWhichEachAddsTheNext_doNotHoldUpThoseWhoFree(Subject subject) throws Exception {
    Cuda cuda = subject.open(options -> options.withDecorator(LockingDriver::new));
    CudaDevice device = cuda.device(0);
    AtomicBoolean stop = new AtomicBoolean();
    try (CudaStream stream = device.createStream();
        MemoryPool pool = new MemoryPool(cuda)) {
      stream.addCallback(() -> use(cuda)).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
      device.synchronize();
      long free = device.memoryInfo().freeBytes();
      try {
        chain(cuda, stream, stop);
        long close = Long.MAX_VALUE;
        long release = Long.MAX_VALUE;
        for (int i = 0; i < FREED; i++) {
          Buffer plain = MemoryResource.direct().allocate(MIB, device.nullStream());
          close = Math.min(close, nanos(plain::close));
          pool.allocate(MIB, device.nullStream()).close();
          release = Math.min(release, nanos(pool::freeAllBlocks));
        }
        assertThat(Math.max(close, release)).as("the fastest of each").isLessThan(SOON_NANOS);
        pool.assertConsistent();
        assertThat(device.memoryInfo().freeBytes()).isLessThan(free - (FREED << 20));
        assertThat(Math.min(nanos(device::synchronize), nanos(device::synchronize)))
            .isLessThan(SOON_NANOS);
      } finally {
        stop.set(true);
      }
      stream.synchronize();
      long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
      do {
        device.synchronize(); // the last callback frees what it put off when it has returned
      } while (device.memoryInfo().freeBytes() != free && System.nanoTime() < until);
      assertThat(device.memoryInfo().freeBytes()).isEqualTo(free);
      assertThat(pool.stats().heldBytes()).isZero();
      pool.assertConsistent();
    }
  }

  private static void chain(Cuda cuda, CudaStream stream, AtomicBoolean stop) {
    stream.addCallback(() -> {
      use(cuda);
      if (!stop.get()) {
        chain(cuda, stream, stop);
      }
    });
  }

  /** How long a step takes, on a thread of its own. */
  private static long nanos(Runnable step) throws Exception {
    long start = System.nanoTime();
    CompletableFuture.runAsync(step, Thread.ofPlatform()::start)
        .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    return System.nanoTime() - start;
  }

  private static void free(Cuda cuda) {
    for (int i = 0; i < ROUNDS; i++) {
      use(cuda);
    }
  }

  private static void use(Cuda cuda) {
    Buffer direct = MemoryResource.direct().allocate(UNEVEN, cuda.currentStream());
    direct.close();
    cuda.directPinned().allocate(UNEVEN).close();
  }

  /** It goes back in order of its stream. */
  @CudaTest
  void memoryWhoseFreeWaitsForNothing_isReleased_whileACallbackRuns(
      Cuda cuda, @NonBlocking CudaStream held, @NonBlocking CudaStream stream) throws Exception {
    PoolOptions ordered = PoolOptions.DEFAULTS.withUpstream(MemoryResource.async());
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch looked = new CountDownLatch(1);
    try (MemoryPool pool = new MemoryPool(cuda, ordered)) {
      pool.allocate(MIB, stream).close();
      CompletableFuture<Void> callback =
          held.addCallback(() -> {
            begun.countDown();
            Latches.await(looked);
          });
      Latches.await(begun);
      assertThat(pool.freeAllBlocks()).isEqualTo(MIB);
      assertThat(pool.totalBytes()).isZero();
      pool.assertConsistent();
      looked.countDown();
      callback.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } finally {
      looked.countDown();
    }
  }
}
