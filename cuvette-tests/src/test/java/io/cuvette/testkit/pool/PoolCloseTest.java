package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedAllocator;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.CountingUpstream;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.OneChunk;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PoolCloseTest {

  @CudaTest
  void closedPool_givesItsCacheBack_andAllocatesNoMore(Subject subject) {
    MemoryPool pool = new MemoryPool(subject.cuda());
    pool.allocate(4 * UNIT).close();
    pool.close();
    pool.close();
    assertThat(pool.isClosed()).isTrue();
    assertThat(pool.totalBytes()).isZero();
    assertThatThrownBy(() -> pool.allocate(UNIT))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    assertThatThrownBy(() -> pool.allocate(0)).isInstanceOf(IllegalStateException.class);
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveAllocations()).isZero();
    }
  }

  @CudaTest
  void buffersInUse_outliveTheirPool(Subject subject) {
    MemoryPool pool = new MemoryPool(subject.cuda());
    Buffer first = pool.allocate(4 * UNIT);
    Buffer second = pool.allocate(4 * UNIT);
    pool.close();
    assertThat(first.isClosed()).isFalse();
    first.fill((byte) 1);
    first.close();
    assertThat(pool.totalBytes()).isEqualTo(4 * UNIT);
    second.fill((byte) 1);
    second.close();
    assertThat(pool.totalBytes()).isZero();
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveAllocations()).isZero();
    }
  }

  /** Nobody else would hear of it. */
  @Test
  void failureToFreeTheLastMemory_isToldToWhoClosesTheBuffer() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      MemoryPool pool = new MemoryPool(cuda);
      ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
      Buffer buffer = pool.allocate(UNIT);
      Buffer ofElastic = elastic.allocate(UNIT);
      pool.close();
      elastic.close();
      script.fail("memFree", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
      script.fail("memUnmap", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(ofElastic::close).isInstanceOf(CudaException.class);
    }
  }

  /** All else is freed, and what could not be is tried again with the Cuda. */
  @Test
  void failureToFreeCachedMemory_isToldToWhoReleasesOrClosesIt() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      MemoryPool pool = new MemoryPool(cuda);
      List<Buffer> all = List.of(pool.allocate(UNIT), pool.allocate(UNIT), pool.allocate(UNIT));
      all.forEach(Buffer::close);
      script.fail("memFree", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(pool::freeAllBlocks).isInstanceOf(CudaException.class);
      assertThat(pool.totalBytes()).isZero();
      List.of(pool.allocate(UNIT), pool.allocate(UNIT)).forEach(Buffer::close);
      long before = script.count("memFree");
      script.fail("memFree", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(pool::close).isInstanceOf(CudaException.class);
      assertThat(script.count("memFree")).as("of the other").isEqualTo(before + 1);
      assertThat(pool.isClosed()).isTrue();
      assertThat(pool.totalBytes()).isZero();
    }
  }

  /** The next who needs memory tries again. */
  @Test
  void addressesOfAClosedElasticPool_areKnownUntilTheyAreFree() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
      pool.allocate(UNIT).close();
      script.fail("memAddressFree", CudaStatus.INVALID_VALUE, 1);
      script.note("memAddressFree");
      assertThatThrownBy(pool::close).isInstanceOf(CudaException.class);
      assertThat(script.notes()).hasSize(1);
      cuda.defaultMemoryPool().freeAllBlocks();
      assertThat(script.notes()).hasSize(2);
      cuda.defaultMemoryPool().freeAllBlocks();
      assertThat(script.notes()).hasSize(2);
    }
  }

  @CudaTest
  void partsOfOneChunk_goBackWithTheLastOfThem(Cuda cuda) {
    MemoryPool pool = new MemoryPool(cuda);
    pool.allocate(4 * UNIT).close();
    Buffer head = pool.allocate(UNIT);
    Buffer tail = pool.allocate(UNIT);
    pool.close();
    head.close();
    assertThat(pool.totalBytes()).isEqualTo(4 * UNIT);
    tail.close();
    assertThat(pool.totalBytes()).isZero();
  }

  @CudaTest
  void bufferUsedOnAnotherStream_goesBackWhenThatIsDone(Cuda cuda, CudaStream other) {
    MemoryPool pool = new MemoryPool(cuda);
    Buffer buffer = pool.allocate(4 * UNIT);
    Gate gate = Gate.on(other);
    for (int i = 0; i < 200; i++) {
      buffer.fill((byte) i, other);
    }
    pool.close();
    buffer.close();
    assertThat(pool.totalBytes()).isEqualTo(4 * UNIT);
    gate.open();
    other.synchronize();
    assertThat(pool.stats().pendingBytes()).isZero();
    assertThat(pool.totalBytes()).isZero();
  }

  @CudaTest(tidy = false)
  void poolOfAClosedCuda_isClosed(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    MemoryPool pool = new MemoryPool(cuda);
    PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
    Buffer buffer = pool.allocate(UNIT);
    Buffer host = pinned.allocate(UNIT);
    cuda.close();
    assertThat(pool.isClosed()).isTrue();
    assertThat(pinned.isClosed()).isTrue();
    assertThat(buffer.isClosed()).isTrue();
    assertThat(host.isClosed()).isTrue();
    assertThat(pool.totalBytes() + pinned.totalBytes()).isZero();
    assertThatThrownBy(() -> pool.allocate(UNIT)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> new MemoryPool(cuda)).isInstanceOf(IllegalStateException.class);
    buffer.close();
    host.close();
    pool.close();
    pinned.close();
  }

  @CudaTest
  void closedPinnedPool_givesItsCacheBack_andAllocatesNoMore(Subject subject) {
    PinnedMemoryPool pool = new PinnedMemoryPool(subject.cuda());
    PinnedBuffer used = pool.allocate(UNEVEN);
    pool.allocate(2000).close();
    pool.close();
    pool.close();
    assertThat(pool.totalBytes()).isEqualTo(used.blockBytes());
    used.segment().fill((byte) 1);
    used.close();
    assertThat(pool.totalBytes()).isZero();
    assertThatThrownBy(() -> pool.allocate(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveHostBytes()).isZero();
    }
  }

  /** The library does not see that the stream is done before the pool is closed. */
  @CudaTest
  void closedPool_givesBackAtOnce_whatStreamsHaveFinishedWith(Subject subject, CudaStream other) {
    Cuda cuda = subject.cuda();
    MemoryPool pool = new MemoryPool(cuda);
    PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
    try (Gate _ = Gate.on(other);
        Buffer block = pool.allocate(UNIT);
        Buffer host = pinned.allocate(UNIT)) {
      block.fill((byte) 1, other);
      host.fill((byte) 1, other);
    }
    cuda.driver().streams().streamSynchronize(0, other.handle());
    pool.close();
    pinned.close();
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveAllocations()).isZero();
      assertThat(subject.simulator().liveHostBytes()).isZero();
    }
  }

  @CudaTest(tidy = false, simulatedOnly = true)
  void closingAPool_takesBackWhatWasForgotten(Subject subject) throws InterruptedException {
    MemoryPool pool = new MemoryPool(subject.cuda());
    PinnedMemoryPool pinned = new PinnedMemoryPool(subject.cuda());
    Forgetting.of(() -> pool.allocate(UNIT));
    Forgetting.of(() -> pinned.allocate(UNIT));
    Forgetting.collectAll();
    pool.close();
    pinned.close();
    assertThat(subject.simulator().liveAllocations()).isZero();
    assertThat(subject.simulator().liveHostBytes()).isZero();
  }

  /** Nothing but the pool refers to its upstream. */
  @CudaTest(tidy = false)
  void closedPools_areNotKeptByTheirCuda(Cuda cuda) throws InterruptedException {
    List<WeakReference<Object>> upstreams = new ArrayList<>();
    Forgetting.of(() -> {
      CountingUpstream first = new CountingUpstream();
      CountingUpstream second = new CountingUpstream();
      OneChunk third = new OneChunk(cuda);
      OneChunk fourth = new OneChunk(cuda);
      List.of(first, second, third, fourth).forEach(one -> upstreams.add(new WeakReference<>(one)));
      try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(first));
          PinnedMemoryPool pinned = pinned(cuda, third)) {
        pool.allocate(UNIT).close();
        pinned.allocate(UNIT).close();
      }
      MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(second));
      PinnedMemoryPool pinned = pinned(cuda, fourth);
      try (Buffer _ = pool.allocate(UNIT);
          Buffer _ = pinned.allocate(UNIT)) {
        pool.close();
        pinned.close();
      }
      return upstreams;
    });
    assertThat(
            Forgetting.collectUntil(() -> upstreams.stream().allMatch(one -> one.refersTo(null))))
        .isTrue();
  }

  private static PinnedMemoryPool pinned(Cuda cuda, PinnedAllocator upstream) {
    return new PinnedMemoryPool(cuda, PinnedPoolOptions.DEFAULTS.withUpstream(upstream));
  }

  @CudaTest
  void poolOfAnotherCuda_isRefused(Subject subject) {
    Cuda one = subject.cuda();
    Cuda two = subject.open(options -> options);
    try (MemoryPool pool = new MemoryPool(one)) {
      assertThatThrownBy(() -> pool.allocate(UNIT, two.currentStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("another Cuda");
      assertThatThrownBy(() -> pool.stats(two.device(0)))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> pool.setLimit(two.device(0), MemoryLimit.none()))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  /** Nobody would give back what it got after that. */
  @CudaTest
  void upstreamOfAPoolThatAListenerCloses_isAskedNoMore(Cuda cuda, CudaStream stream) {
    CountingUpstream upstream = new CountingUpstream();
    MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
    pool.setLimit(MemoryLimit.ofBytes(4 * UNIT));
    Buffer all = pool.allocate(4 * UNIT, stream);
    var _ =
        pool.addPressureListener((_, _) -> {
          all.close();
          pool.close();
          return all.byteSize();
        });
    long asked = upstream.asked();
    assertThatThrownBy(() -> pool.allocate(UNIT, stream))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageEndingWith("is closed");
    assertThat(upstream.asked()).isEqualTo(asked);
    assertThat(upstream.liveBytes()).isZero();
  }
}
