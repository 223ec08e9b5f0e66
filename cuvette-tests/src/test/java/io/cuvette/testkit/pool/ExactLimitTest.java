package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Latches;
import io.cuvette.testkit.support.OneChunk;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;

/**
 * A request of just what a limit leaves is not forbidden by it: whatever is done where the device
 * is short is done for it too.
 */
@Timeout(120)
class ExactLimitTest {
  private static final long MOST = 40 * MIB;
  private static final long HELD_MILLIS = 500;

  private static MemoryPool limited(Cuda cuda) {
    MemoryPool pool = new MemoryPool(cuda);
    pool.setLimit(MemoryLimit.ofBytes(MOST));
    return pool;
  }

  /** Holds the work of a stream back for a while, by another thread than this one. */
  private static CountDownLatch hold(Cuda cuda, CudaStream stream) {
    CountDownLatch gate = new CountDownLatch(1);
    cuda.driver().streams().launchHostFunc(0, stream.handle(), () -> Latches.await(gate));
    return gate;
  }

  private static Thread releaseSoon(CountDownLatch gate) {
    return Thread.ofPlatform()
        .start(() -> {
          try {
            boolean _ = gate.await(HELD_MILLIS, TimeUnit.MILLISECONDS);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
          gate.countDown();
        });
  }

  @CudaTest(memory = "64MiB")
  void cachesOfOtherPools_areReleased(Cuda cuda) {
    try (MemoryPool idle = new MemoryPool(cuda);
        MemoryPool pool = limited(cuda)) {
      idle.allocate(MOST).close();
      pool.allocate(MOST).close();
      assertThat(idle.totalBytes()).isZero();
    }
  }

  /** Their streams have work before the free, which comes to its end only later. */
  @CudaTest(memory = "64MiB")
  void freesInOrderOfAnotherStream_areWaitedFor(
      Cuda cuda, AsyncMemoryPool ordered, @NonBlocking CudaStream one, @NonBlocking CudaStream two)
      throws InterruptedException {
    for (MemoryResource from : new MemoryResource[] {ordered, MemoryResource.async()}) {
      try (MemoryPool pool = limited(cuda)) {
        Buffer freed = from.allocate(MOST, one);
        CountDownLatch gate = hold(cuda, one);
        freed.close();
        Thread releasing = releaseSoon(gate);
        pool.allocate(MOST, two).close();
        releasing.join();
      }
      one.synchronize();
      two.synchronize();
      cuda.driver().pools().memPoolTrimTo(cuda.driver().pools().deviceGetMemPool(0), 0);
      ordered.freeAllBlocks();
    }
  }

  /** What a closed pool has lent comes back to the one upstream of both. */
  @CudaTest
  void blocksOfAClosedPinnedPool_areWaitedFor(Cuda cuda, @NonBlocking CudaStream stream)
      throws InterruptedException {
    PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withUpstream(new OneChunk(cuda));
    PinnedMemoryPool closed = new PinnedMemoryPool(cuda, options);
    try (PinnedMemoryPool pool =
        new PinnedMemoryPool(cuda, options.withLimit(MemoryLimit.ofBytes(512)))) {
      PinnedBuffer used = closed.allocate(512);
      CountDownLatch gate = hold(cuda, stream);
      used.fill((byte) 1, stream);
      used.close();
      closed.close();
      assertThat(closed.isClosed()).isTrue();
      assertThat(pool.isClosed()).isFalse();
      Thread releasing = releaseSoon(gate);
      pool.allocate(512).close();
      releasing.join();
    }
  }

  /** A listener ends the work of one stream: what waits for another is not waited for. */
  @CudaTest
  void memoryThatAListenerMadeFree_isTakenWithoutWaitingForMore(
      Cuda cuda, @NonBlocking CudaStream one, @NonBlocking CudaStream two) {
    MemoryPool pool = new MemoryPool(cuda);
    pool.setLimit(MemoryLimit.ofBytes(2 * MIB));
    CountDownLatch first = new CountDownLatch(1);
    CountDownLatch second = new CountDownLatch(1);
    try (pool;
        var _ =
            pool.addPressureListener((_, _) -> {
              first.countDown();
              one.synchronize();
              return 1;
            })) {
      Buffer a = pool.allocate(MIB);
      Buffer b = pool.allocate(MIB);
      cuda.driver().streams().launchHostFunc(0, one.handle(), () -> Latches.await(first));
      cuda.driver().streams().launchHostFunc(0, two.handle(), () -> Latches.await(second));
      a.fill((byte) 1, one);
      b.fill((byte) 1, two);
      a.close();
      b.close();
      Thread late =
          Thread.ofPlatform()
              .start(() -> {
                try {
                  boolean _ = second.await(30, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                  Thread.currentThread().interrupt();
                }
                second.countDown();
              });
      pool.allocate(MIB).close();
      assertThat(second.getCount()).as("it has waited for the other stream").isEqualTo(1);
      second.countDown();
      late.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    } finally {
      first.countDown();
      second.countDown();
    }
  }

  /** The stream that wants the chunk of another is closed while that one is queried. */
  @CudaTest(simulatedOnly = true)
  void chunkForAStreamThatIsClosedMeanwhile_goesBackToTheDriver(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream one) throws Exception {
    try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withCrossStreamBytes(0))) {
      CudaStream two = cuda.device(0).createStream();
      pool.allocate(MIB, one).close();
      driver.answer(
          "streamQuery",
          call -> {
            driver.unscript("streamQuery");
            Thread.ofPlatform().start(two::close).join();
            return call.proceed();
          });
      try {
        pool.allocate(MIB, two).close();
      } catch (IllegalStateException e) {
        assertThat(e).hasMessageContaining("is closed");
      }
      assertThat(two.isClosed()).isTrue();
      pool.assertConsistent();
      pool.freeAllBlocks();
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest(simulatedOnly = true)
  void driverThatCannotSayWhatIsFree_doesNotHideThatMemoryIsOut(Cuda cuda, ScriptedDriver driver) {
    driver.fail("memGetInfo", CudaStatus.NOT_SUPPORTED);
    CudaStream stream = cuda.currentStream();
    var e =
        catchThrowableOfType(
            OutOfDeviceMemoryException.class,
            () -> MemoryResource.direct().allocate(1L << 50, stream));
    driver.unscript("memGetInfo");
    assertThat(e).hasMessageContaining("free unknown in the driver");
    assertThat(e.details().driverFreeBytes()).isEqualTo(-1);
  }

  @CudaTest(simulatedOnly = true)
  void memoryThatTheDriverDoesNotKnow_cannotBeShared_andOtherFailuresArePassedOn(
      Cuda cuda, ScriptedDriver driver) {
    try (Buffer buffer = MemoryResource.direct().allocate(512, cuda.currentStream())) {
      for (CudaStatus status :
          new CudaStatus[] {CudaStatus.INVALID_VALUE, CudaStatus.NOT_SUPPORTED}) {
        driver.fail("pointerGetAttribute", status);
        assertThatThrownBy(buffer::descriptor)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("cannot be exported");
      }
      driver.fail("pointerGetAttribute", CudaStatus.NOT_PERMITTED);
      assertThatThrownBy(buffer::descriptor)
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_PERMITTED));
      driver.unscript("pointerGetAttribute");
    }
  }

  @CudaTest(simulatedOnly = true)
  void adviceThatADriverDoesNotKnow_isRefusedWithWhatMemoryItIs(Cuda cuda, ScriptedDriver driver) {
    try (var managed = cuda.allocateManaged(512)) {
      driver.fail("memAdvise", CudaStatus.NOT_SUPPORTED);
      assertThatThrownBy(() -> managed.advise(MemoryAdvice.SET_READ_MOSTLY, MemoryLocation.host()))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("not for this memory with this driver");
      driver.unscript("memAdvise");
    }
  }

  /** Waiting for a device allocates a byte and frees it; here that fails once. */
  @CudaTest(simulatedOnly = true)
  void byteThatCouldNotBeFreedAfterAWait_isFreedAgain(Cuda cuda, ScriptedDriver driver) {
    cuda.device(0).synchronize();
    long allocated = driver.count("memAlloc");
    long freed = driver.count("memFree");
    driver.fail("memFree", CudaStatus.NOT_PERMITTED, 1);
    assertThatThrownBy(cuda.device(0)::synchronize).isInstanceOf(CudaException.class);
    assertThat(driver.count("memAlloc")).isEqualTo(allocated + 1);
    assertThat(driver.count("memFree")).isEqualTo(freed + 1);
  }
}
