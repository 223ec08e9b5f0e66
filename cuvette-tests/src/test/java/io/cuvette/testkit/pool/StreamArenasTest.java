package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Whose memory is whose: threads, per-thread streams, wrapped streams, streams that are gone. */
class StreamArenasTest {
  private static final int QUEUED = 200;

  @CudaTest
  void threadsOnTheNullStream_shareItsBlocks(Cuda cuda) {
    assertThat(otherThreadsAddress(cuda, device -> device.nullStream(), true)).isTrue();
  }

  @CudaTest
  void threadsOnOneStream_shareItsBlocks(Cuda cuda, CudaStream shared) {
    assertThat(otherThreadsAddress(cuda, device -> shared, true)).isTrue();
  }

  @CudaTest
  void perThreadStreams_haveArenasOfTheirOwn(Cuda cuda) {
    assertThat(otherThreadsAddress(cuda, device -> device.perThreadStream(), false)).isTrue();
  }

  @CudaTest
  void legacyStream_isAnotherArenaThanTheNullStream(Cuda cuda, MemoryPool pool) {
    Buffer first = pool.allocate(UNIT, cuda.device(0).nullStream());
    first.close();
    try (Buffer second = pool.allocate(UNIT, cuda.device(0).legacyStream())) {
      assertThat(second.address()).isNotEqualTo(first.address());
    }
  }

  /** Frees on one thread, allocates on a second while the first is alive, and compares. */
  private static boolean otherThreadsAddress(
      Cuda cuda, Function<CudaDevice, CudaStream> stream, boolean same) {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      AtomicLong first = new AtomicLong();
      AtomicLong second = new AtomicLong();
      Consumer<AtomicLong> allocates =
          address -> {
            try (Buffer buffer = pool.allocate(4 * UNIT, stream.apply(cuda.device(0)))) {
              address.set(buffer.address());
            }
          };
      run(() -> {
        allocates.accept(first);
        run(() -> allocates.accept(second));
      });
      assertThat(first.get()).isNotZero();
      return same == (first.get() == second.get());
    }
  }

  /** In a thread that ends. */
  private static void run(Runnable step) {
    CompletableFuture.runAsync(step, Thread.ofPlatform()::start).join();
  }

  /** Nothing tells when its own work is done but that all of the device is. */
  @Test
  void blocksOfAStreamWhoseEndCouldNotBeMarked_areUsedAgain_onceTheDeviceIsDone() {
    ScriptedDriver script = new ScriptedDriver();
    CudaOptions lazy = CudaOptions.simulated().withDevice("sim:pace=lazy");
    try (Cuda cuda = Cuda.open(lazy.withDecorator(script::over));
        MemoryPool pool = new MemoryPool(cuda);
        CudaStream next = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      CudaStream gone = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      Buffer cached = pool.allocate(4 * UNIT, gone);
      try (Gate _ = Gate.on(gone)) {
        cached.fill((byte) 1, gone);
        cached.close();
        script.fail("eventRecord", CudaStatus.INVALID_VALUE);
        assertThatThrownBy(gone::close).isInstanceOf(CudaException.class);
        script.unscript("eventRecord");
        try (Buffer other = pool.allocate(4 * UNIT, next)) {
          assertThat(other.address()).isNotEqualTo(cached.address());
        }
      }
      cuda.device(0).synchronize();
      pool.freeAllBlocks();
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @CudaTest
  void blocksOfAClosedStream_areUsedAgain_onceItsWorkIsDone(Cuda cuda, MemoryPool pool) {
    CudaStream gone = cuda.device(0).createStream();
    Buffer cached = pool.allocate(4 * UNIT, gone);
    cached.close();
    gone.close();
    try (CudaStream next = cuda.device(0).createStream();
        Buffer found = pool.allocate(4 * UNIT, next)) {
      assertThat(found.address()).isEqualTo(cached.address());
      assertThat(pool.stats().growths()).isEqualTo(1);
    }
  }

  /** The driver gives the handle of a destroyed stream to the next one: that must not matter. */
  @CudaTest
  void blocksOfADestroyedStream_areNotLentWhileItsWorkRuns(Cuda cuda, MemoryPool pool) {
    CudaStream gone = cuda.device(0).createStream();
    Buffer cached = pool.allocate(4 * UNIT, gone);
    try (Gate _ = Gate.on(gone)) {
      for (int i = 0; i < QUEUED; i++) {
        cached.fill((byte) i, gone);
      }
      cached.close();
      gone.close();
      try (CudaStream next = cuda.device(0).createStream();
          Buffer other = pool.allocate(4 * UNIT, next)) {
        assertThat(other.address()).isNotEqualTo(cached.address());
      }
    }
    cuda.device(0).synchronize();
    try (CudaStream later = cuda.device(0).createStream();
        Buffer one = pool.allocate(4 * UNIT, later);
        Buffer two = pool.allocate(4 * UNIT, later)) {
      assertThat(one.address() == cached.address() || two.address() == cached.address()).isTrue();
    }
  }

  @CudaTest
  void bufferThatOutlivesItsStream_goesBackToThePool(Cuda cuda, MemoryPool pool) {
    CudaStream gone = cuda.device(0).createStream();
    Buffer buffer = pool.allocate(4 * UNIT, gone);
    gone.close();
    buffer.fill((byte) 1);
    buffer.close();
    cuda.device(0).synchronize();
    assertThat(pool.usedBytes()).isZero();
    assertThat(pool.freeBytes()).isEqualTo(4 * UNIT);
    assertThat(pool.freeAllBlocks()).isEqualTo(4 * UNIT);
  }

  @CudaTest
  void wrappersOfOneStream_shareItsBlocks(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long handle = driver.streams().streamCreateWithPriority(0, 0, 0);
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream one = cuda.device(0).wrapStream(handle, null);
        CudaStream two = cuda.device(0).wrapStream(handle, null)) {
      assertThat(one).isEqualTo(two);
      Buffer first = pool.allocate(4 * UNIT, one);
      first.close();
      try (Buffer second = pool.allocate(4 * UNIT, two)) {
        assertThat(second.address()).isEqualTo(first.address());
      }
    }
    driver.streams().streamDestroy(0, handle);
  }

  /** The wrapper was closed, and somebody else's stream has the same handle now. */
  @CudaTest
  void wrapperOfANewStreamWithAnOldHandle_doesNotInheritRunningWork(Cuda cuda, MemoryPool pool) {
    CudaDriver driver = cuda.driver();
    long old = driver.streams().streamCreateWithPriority(0, 1, 0);
    Buffer cached;
    Gate gate;
    try (CudaStream wrapped = cuda.device(0).wrapStream(old, null)) {
      cached = pool.allocate(4 * UNIT, wrapped);
      gate = Gate.on(wrapped);
      for (int i = 0; i < QUEUED; i++) {
        cached.fill((byte) i, wrapped);
      }
      cached.close();
    }
    driver.streams().streamDestroy(0, old);
    long handle = driver.streams().streamCreateWithPriority(0, 1, 0);
    try (CudaStream wrapped = cuda.device(0).wrapStream(handle, null);
        Buffer other = pool.allocate(4 * UNIT, wrapped)) {
      assertThat(other.address()).isNotEqualTo(cached.address());
    } finally {
      gate.open();
    }
    cuda.device(0).synchronize();
    driver.streams().streamDestroy(0, handle);
  }

  @CudaTest
  void wrapperOfTheLibrarysOwnStream_isThatStream(Cuda cuda, MemoryPool pool, CudaStream own) {
    CudaStream wrapped = cuda.device(0).wrapStream(own.handle(), null);
    assertThat(wrapped).isEqualTo(own);
    Buffer first = pool.allocate(4 * UNIT, own);
    first.close();
    try (Buffer second = pool.allocate(4 * UNIT, wrapped)) {
      assertThat(second.address()).isEqualTo(first.address());
    }
    wrapped.close();
    assertThat(own.isClosed()).isFalse();
    own.synchronize();
  }
}
