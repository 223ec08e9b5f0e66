package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedAllocator;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PoolOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * An upstream of the program keeps what it gave to a pool. Whatever it does with that, nothing is
 * freed that the pool lends from.
 */
class KeptByUpstreamTest {
  private static final int BYTES = 1 << 20;
  private static final int ROUNDS = 500;

  @CudaTest
  void bufferThatWasGiven_isFreedByThePool_whoeverCloses(Cuda cuda) {
    List<MemoryResource> upstreams = new ArrayList<>();
    upstreams.add(MemoryResource.direct());
    upstreams.add(MemoryResource.managed());
    MemoryPool under = new MemoryPool(cuda);
    upstreams.add(under);
    for (MemoryResource upstream : upstreams) {
      List<Buffer> given = new ArrayList<>();
      MemoryPool pool = poolOver(cuda, keeping(upstream, given));
      Buffer lent = pool.allocate(BYTES);
      closedInVain(given.getFirst(), lent);
      try (Buffer other = upstream.allocate(BYTES, cuda.currentStream())) {
        assertThat(other.address()).isNotEqualTo(lent.address());
      }
      lent.fill((byte) 1);
      lent.close();
      pool.assertConsistent();
      pool.allocate(BYTES).close(); // it is the pool's still
      assertThat(given).hasSize(1);
      assertThat(pool.freeAllBlocks()).isEqualTo(BYTES);
      pool.close();
    }
    under.close();
  }

  @CudaTest
  void bufferOfADriversPool_isHeldToo(Cuda cuda) {
    AsyncMemoryPool under = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    List<Buffer> given = new ArrayList<>();
    MemoryPool pool = poolOver(cuda, keeping(under, given));
    Buffer lent = pool.allocate(BYTES);
    closedInVain(given.getFirst(), lent);
    under.close();
    lent.fill((byte) 1);
    lent.close();
    pool.close();
  }

  @CudaTest
  void wholeOfGivenSlices_isFreed_whenAllAreBack(Cuda cuda) {
    Buffer whole = MemoryResource.direct().allocate(2 * BYTES, cuda.currentStream());
    AtomicLong next = new AtomicLong();
    MemoryPool pool =
        poolOver(cuda, (bytes, _) -> whole.slice(next.getAndAdd(bytes) % (2 * BYTES), bytes));
    Buffer first = pool.allocate(BYTES);
    Buffer second = pool.allocate(BYTES);
    whole.slice(0, BYTES).close(); // does nothing
    closedInVain(whole, first);
    first.close();
    pool.freeAllBlocks();
    assertThatThrownBy(() -> pool.allocate(BYTES)).hasMessageContaining("is closed");
    try (Buffer other = MemoryResource.direct().allocate(2 * BYTES, cuda.currentStream())) {
      assertThat(other.address()).isNotEqualTo(whole.address());
    }
    second.fill((byte) 2);
    second.close();
    pool.close();
  }

  @CudaTest
  void memoryThatAPoolLendsFrom_isRefusedByAnother(Cuda cuda) {
    Buffer whole = MemoryResource.direct().allocate(BYTES, cuda.currentStream());
    MemoryPool first = poolOver(cuda, (bytes, _) -> whole.slice(0, bytes));
    MemoryPool second = poolOver(cuda, (bytes, _) -> whole.slice(512, bytes));
    first.allocate(1024).close();
    assertThatThrownBy(() -> second.allocate(UNIT))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("again");
    second.assertConsistent();
    first.close();
    second.allocate(UNIT).close();
    second.close();
    whole.close();
  }

  @CudaTest
  void pinnedBufferThatWasGiven_isFreedByThePool_whoeverCloses(Cuda cuda) {
    List<PinnedBuffer> given = new ArrayList<>();
    PinnedMemoryPool under = new PinnedMemoryPool(cuda);
    for (boolean pooled : new boolean[] {false, true}) {
      given.clear();
      PinnedMemoryPool pool =
          pinnedPoolOver(
              cuda,
              bytes ->
                  kept(
                      pooled ? under.allocate(bytes) : cuda.directPinned().allocate(bytes), given));
      PinnedBuffer lent = pool.allocate(BYTES);
      lent.segment().set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
      closedInVain(given.getFirst(), lent);
      lent.segment().set(ValueLayout.JAVA_BYTE, 0, (byte) 2);
      lent.close();
      pool.assertConsistent();
      assertThat(pool.freeAllBlocks()).isEqualTo(BYTES);
      pool.close();
    }
    under.close();
  }

  @CudaTest
  void wholeOfPinnedSlices_isFreedByThePool(Cuda cuda) {
    PinnedBuffer whole = cuda.directPinned().allocate(BYTES);
    PinnedMemoryPool pool = pinnedPoolOver(cuda, bytes -> whole.slice(0, bytes));
    PinnedBuffer lent = pool.allocate(4096);
    closedInVain(whole, lent);
    lent.segment().fill((byte) 1);
    lent.close();
    pool.close();
  }

  /** Closing beside the upstream call: either the pool does not take it, or it is freed later. */
  @CudaTest(simulatedOnly = true)
  void closeWhileItIsGiven_isDoneOrLeftToThePool(Cuda cuda) throws Exception {
    try (ExecutorService other = Executors.newSingleThreadExecutor()) {
      for (int round = 0; round < ROUNDS; round++) {
        AtomicReference<Buffer> given = new AtomicReference<>();
        CountDownLatch ready = new CountDownLatch(1);
        MemoryPool pool =
            poolOver(
                cuda,
                (bytes, stream) -> {
                  given.set(MemoryResource.direct().allocate(bytes, stream));
                  ready.countDown();
                  return given.get();
                });
        Future<?> closed =
            other.submit(() -> {
              assertThat(ready.await(40, TimeUnit.SECONDS)).isTrue();
              given.get().close();
              return null;
            });
        Buffer lent = allocateIfOpen(pool);
        closed.get(40, TimeUnit.SECONDS);
        pool.assertConsistent();
        if (lent != null) {
          try (Buffer same = MemoryResource.direct().allocate(UNIT, lent.stream())) {
            assertThat(same.address()).as("round %d", round).isNotEqualTo(lent.address());
          }
          lent.fill((byte) 1);
          lent.close();
        }
        pool.close();
      }
    }
  }

  private static Buffer allocateIfOpen(MemoryPool pool) {
    try {
      return pool.allocate(UNIT);
    } catch (IllegalStateException e) {
      return null;
    }
  }

  /** The upstream pool was made last, or first: the end does not wait for what pools hold. */
  @CudaTest(tidy = false)
  void cudaClosesWithEverythingInUse(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    AtomicReference<MemoryPool> later = new AtomicReference<>();
    MemoryPool early = poolOver(cuda, (bytes, stream) -> later.get().allocate(bytes, stream));
    Buffer whole = MemoryResource.direct().allocate(4L * BYTES, cuda.currentStream());
    later.set(poolOver(cuda, (bytes, _) -> whole.slice(0, bytes)));
    AtomicReference<PinnedMemoryPool> laterPinned = new AtomicReference<>();
    PinnedMemoryPool earlyPinned = pinnedPoolOver(cuda, bytes -> laterPinned.get().allocate(bytes));
    laterPinned.set(new PinnedMemoryPool(cuda));
    Buffer lent = early.allocate(BYTES);
    PinnedBuffer pinned = earlyPinned.allocate(BYTES);
    pinned.segment();
    cuda.close();
    assertThat(lent.isClosed()).isTrue();
    assertThat(pinned.isClosed()).isTrue();
    assertThat(whole.isClosed()).isTrue();
    if (subject.isSimulated()) {
      whole.close(); // does nothing
    }
  }

  private static MemoryResource keeping(MemoryResource upstream, List<Buffer> given) {
    return (bytes, stream) -> kept(upstream.allocate(bytes, stream), given);
  }

  private static <B> B kept(B buffer, List<B> given) {
    given.add(buffer);
    return buffer;
  }

  private static void closedInVain(Buffer given, Buffer lent) {
    given.close();
    assertThat(given.isClosed()).isTrue();
    assertThat(lent.isClosed()).isFalse();
    given.close(); // does nothing
  }

  private static MemoryPool poolOver(Cuda cuda, MemoryResource upstream) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
  }

  private static PinnedMemoryPool pinnedPoolOver(Cuda cuda, PinnedAllocator upstream) {
    return new PinnedMemoryPool(cuda, PinnedPoolOptions.DEFAULTS.withUpstream(upstream));
  }
}
