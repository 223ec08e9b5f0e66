package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolStats;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The same questions to each kind of caching pool. */
@Timeout(60)
class PoolKindsTest {
  private static final long BYTES = 2L << 20;

  private final ScriptedDriver script = new ScriptedDriver();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withLeakLevel(LeakLevel.OFF) // without the collector, which takes its time
              .withDecorator(script::over));
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);

  @AfterEach
  void close() {
    cuda.close();
  }

  /** A pool of some kind, and what all kinds have. */
  private record Made(
      Runnable close,
      BiFunction<Long, CudaStream, Buffer> allocate,
      Supplier<LongStream> now,
      LongSupplier held,
      Runnable check,
      Map<String, LongSupplier> releases) {
    Buffer of(long bytes, CudaStream stream) {
      return allocate.apply(bytes, stream);
    }
  }

  private enum Kind {
    CACHING("memAlloc", "memFree"),
    ELASTIC("memCreate", "memUnmap"),
    PINNED("memHostAlloc", "memFreeHost");

    private final String asks;
    private final String frees;

    Kind(String asks, String frees) {
      this.asks = asks;
      this.frees = frees;
    }

    private static LongStream now(PoolStats now) {
      return LongStream.of(
          now.usedBytes(),
          now.freeBytes(),
          now.heldBytes(),
          now.requestedBytes(),
          now.pendingBytes(),
          now.graphBytes(),
          now.releasableBytes(),
          now.largestFreeBytes(),
          now.usedBlocks(),
          now.freeBlocks(),
          now.chunks());
    }

    private static LongStream now(PinnedPoolStats now) {
      return LongStream.of(
          now.usedBytes(),
          now.freeBytes(),
          now.heldBytes(),
          now.requestedBytes(),
          now.pendingBytes(),
          now.usedBlocks(),
          now.freeBlocks());
    }

    Made make(Cuda cuda, MemoryLimit limit) {
      return switch (this) {
        case CACHING -> caching(cuda, limit);
        case ELASTIC -> elastic(cuda, limit);
        case PINNED -> pinned(cuda, limit);
      };
    }

    private static Made caching(Cuda cuda, MemoryLimit limit) {
      MemoryPool pool = new MemoryPool(cuda);
      pool.setLimit(limit);
      Map<String, LongSupplier> releases = new LinkedHashMap<>();
      releases.put("freeAllBlocks", pool::freeAllBlocks);
      releases.put("of the device", () -> pool.freeAllBlocks(cuda.device(0)));
      releases.put("trim", () -> pool.trim(0));
      releases.put("what is idle", () -> pool.trim(Duration.ZERO));
      return new Made(
          pool::close,
          pool::allocate,
          () -> now(pool.stats()),
          pool::totalBytes,
          pool::assertConsistent,
          releases);
    }

    private static Made elastic(Cuda cuda, MemoryLimit limit) {
      ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
      pool.setLimit(limit);
      Map<String, LongSupplier> releases = new LinkedHashMap<>();
      releases.put("freeAllBlocks", pool::freeAllBlocks);
      releases.put("of the device", () -> pool.freeAllBlocks(cuda.device(0)));
      releases.put("trim", () -> pool.trim(0));
      releases.put("what is idle", () -> pool.trim(Duration.ZERO));
      return new Made(
          pool::close,
          pool::allocate,
          () -> now(pool.stats()),
          pool::totalBytes,
          pool::assertConsistent,
          releases);
    }

    private static Made pinned(Cuda cuda, MemoryLimit limit) {
      PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
      pool.setLimit(limit);
      return new Made(
          pool::close,
          (bytes, _) -> pool.allocate(bytes),
          () -> now(pool.stats()),
          pool::totalBytes,
          pool::assertConsistent,
          Map.of("freeAllBlocks", pool::freeAllBlocks));
    }
  }

  private Made make(Kind kind) {
    return kind.make(cuda, MemoryLimit.none());
  }

  /** Nobody of the library has seen that it is done. */
  private Buffer closedAfterWork(Made pool) {
    Buffer block = pool.of(BYTES, stream);
    try (Gate _ = Gate.on(other);
        block) {
      block.fill((byte) 1, other);
    }
    cuda.driver().streams().streamSynchronize(0, other.handle());
    return block;
  }

  private void openAtAWait(Gate gate) {
    for (String wait : List.of("eventSynchronize", "streamSynchronize")) {
      script.answer(
          wait,
          call -> {
            gate.open();
            return call.proceed();
          });
    }
  }

  @ParameterizedTest
  @EnumSource
  void poolWhoseCudaIsClosed_hasNothing(Kind kind) {
    Made pool = make(kind);
    List<Buffer> used = new ArrayList<>();
    for (long bytes : new long[] {100, 5000, BYTES, 3 * BYTES}) {
      used.add(pool.of(bytes, stream));
      used.add(pool.of(bytes, other));
      pool.of(bytes, stream).close();
    }
    Buffer pending = pool.of(BYTES, stream);
    pending.fill((byte) 1, other);
    pending.close();
    assertThat(pool.now.get().limit(3)).allMatch(number -> number > 0);
    cuda.close();
    assertThat(used).allMatch(Buffer::isClosed);
    assertThat(pool.now.get()).containsOnly(0L);
    assertThat(pool.held.getAsLong()).isZero();
    pool.check.run();
  }

  @ParameterizedTest
  @EnumSource
  void workThatIsDone_isNoticedByWhoeverReleases(Kind kind) {
    make(kind)
        .releases
        .keySet()
        .forEach(way -> {
          Made pool = make(kind);
          Buffer _ = closedAfterWork(pool);
          long held = pool.held.getAsLong();
          assertThat(pool.releases.get(way).getAsLong()).as(way).isEqualTo(held).isPositive();
          assertThat(pool.held.getAsLong()).as(way).isZero();
          Buffer _ = closedAfterWork(pool);
          pool.close.run();
          assertThat(pool.held.getAsLong()).as("closed").isZero();
        });
  }

  @ParameterizedTest
  @EnumSource
  void workThatIsDone_isNoticedByWhoeverAllocates(Kind kind) {
    Made pool = kind.make(cuda, MemoryLimit.ofBytes(BYTES));
    Buffer done = closedAfterWork(pool);
    long asked = script.count(kind.asks);
    try (Buffer again = pool.of(BYTES, stream)) {
      assertThat(again.address()).isEqualTo(done.address());
      assertThat(script.count(kind.asks)).isEqualTo(asked);
    }
  }

  /** Then nothing is lost, and the next who does the same gets what there is. */
  @ParameterizedTest
  @EnumSource
  void releaseThatFails_isToldToWhoeverReleases(Kind kind) {
    make(kind)
        .releases
        .keySet()
        .forEach(way -> {
          Made pool = make(kind);
          LongSupplier release = pool.releases.get(way);
          pool.of(BYTES, stream).close();
          script.fail(kind.frees, CudaStatus.INVALID_VALUE, 1);
          assertThatThrownBy(release::getAsLong).as(way).isInstanceOf(CudaException.class);
          pool.check.run();
          pool.of(BYTES, stream).close();
          stream.synchronize();
          assertThat(release.getAsLong()).as(way).isEqualTo(BYTES);
          assertThat(pool.held.getAsLong()).as(way).isZero();
          pool.of(BYTES, stream).close();
          script.fail(kind.frees, CudaStatus.INVALID_VALUE, 1);
          assertThatThrownBy(pool.close::run).as("close").isInstanceOf(CudaException.class);
          pool.close.run();
          cuda.defaultMemoryPool().freeAllBlocks(); // who looks for memory tries again
          assertThat(pool.held.getAsLong()).as("closed").isZero();
        });
  }

  @ParameterizedTest
  @EnumSource
  void closedPool_refusesEverySize(Kind kind) {
    for (long limit : new long[] {0, 512, Long.MAX_VALUE}) {
      Made pool = kind.make(cuda, MemoryLimit.ofBytes(limit));
      pool.close.run();
      for (long bytes : new long[] {0, 1, 4096, 1L << 50}) {
        assertThatThrownBy(() -> pool.of(bytes, stream))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("is closed");
      }
      assertThatCode(pool.check::run).doesNotThrowAnyException();
    }
  }

  /** Nobody asks the pool itself again. */
  @ParameterizedTest
  @EnumSource
  void memoryOfAClosedPool_comesBackWithWhoeverLooksForWorkThatIsDone(Kind kind) {
    Made next = make(kind);
    Map<String, Runnable> looks =
        Map.of(
            "the stream", other::synchronize,
            "the device", () -> cuda.device(0).synchronize(),
            "another pool", () -> next.releases.get("freeAllBlocks").getAsLong());
    looks.forEach((name, look) -> {
      Made pool = make(kind);
      Buffer block = pool.of(BYTES, stream);
      try (Gate _ = Gate.on(other)) {
        block.fill((byte) 1, other);
        block.close();
        pool.close.run();
        assertThat(pool.held.getAsLong()).as(name).isEqualTo(BYTES);
      }
      cuda.driver().streams().streamSynchronize(0, other.handle());
      look.run();
      assertThat(pool.held.getAsLong()).as(name).isZero();
    });
  }

  /** Of each kind, with a limit that it just fits. It is what the driver lacks. */
  @ParameterizedTest
  @EnumSource
  void memoryOfClosedPools_isWaitedFor_byThoseThatItHelps(Kind kind) {
    for (Kind ended : Kind.values()) {
      Made closed = make(ended);
      Made pool = kind.make(cuda, MemoryLimit.ofBytes(BYTES));
      Buffer block = closed.of(BYTES, stream);
      long address = block.address();
      try (Gate gate = Gate.on(other)) {
        block.fill((byte) 1, other);
        block.close();
        closed.close.run();
        openAtAWait(gate);
        AtomicBoolean isFreed = new AtomicBoolean();
        script.answer(
            ended.frees,
            call -> {
              boolean isIt = ended == Kind.PINNED || call.number("address") == address;
              isFreed.compareAndSet(false, isIt);
              return call.proceed();
            });
        AtomicInteger asked = new AtomicInteger();
        script.answer(
            kind.asks,
            call -> {
              asked.incrementAndGet();
              if (!isFreed.get()) {
                throw new CudaException(CudaStatus.OUT_OF_MEMORY, call.name(), "by the test");
              }
              return call.proceed();
            });
        if ((kind == Kind.PINNED) == (ended == Kind.PINNED)) {
          pool.of(BYTES, stream).close();
          assertThat(closed.held.getAsLong()).isZero();
        } else {
          assertThatThrownBy(() -> pool.of(BYTES, stream))
              .isInstanceOfAny(OutOfDeviceMemoryException.class, OutOfPinnedMemoryException.class);
          assertThat(closed.held.getAsLong()).isEqualTo(BYTES);
          assertThat(asked).as("asked again for nothing").hasValueLessThanOrEqualTo(2);
        }
      }
      script.unscript(kind.asks);
      cuda.device(0).synchronize();
      pool.close.run();
    }
  }

  /** What it has of the pool is in use. */
  @ParameterizedTest
  @EnumSource
  void streamThatHasNothingFree_isNotWaitedFor(Kind kind) {
    Made pool = kind.make(cuda, MemoryLimit.ofBytes(2 * BYTES));
    Buffer used = pool.of(BYTES, other);
    try (Gate gate = Gate.on(other)) {
      openAtAWait(gate);
      used.fill((byte) 1, other);
      assertThatThrownBy(() -> pool.of(2 * BYTES, stream))
          .isInstanceOfAny(OutOfDeviceMemoryException.class, OutOfPinnedMemoryException.class);
      assertThat(other.isDone()).isFalse();
    }
    used.close();
  }

  /** It goes back to that pool alone, and nothing would come of a wait. */
  @ParameterizedTest
  @EnumSource
  void memoryOfOpenPools_isNotWaitedForByOthers(Kind kind) {
    for (Kind opened : Kind.values()) {
      Made open = make(opened);
      Made pool = make(kind);
      Buffer pending = open.of(BYTES, stream);
      try (Gate gate = Gate.on(other)) {
        pending.fill((byte) 1, other);
        pending.close();
        openAtAWait(gate);
        script.fail(kind.asks, CudaStatus.OUT_OF_MEMORY);
        assertThatThrownBy(() -> pool.of(BYTES, stream))
            .isInstanceOfAny(OutOfDeviceMemoryException.class, OutOfPinnedMemoryException.class);
        assertThat(other.isDone()).as("%s is open", opened).isFalse();
        assertThat(open.held.getAsLong()).isEqualTo(BYTES);
      }
      script.unscript(kind.asks);
      cuda.device(0).synchronize();
      pool.close.run();
      open.close.run();
    }
  }

  /** Whoever can have nothing takes nothing from others. */
  @ParameterizedTest
  @EnumSource
  void requestBeyondTheLimit_releasesNothing_andAsksForNothing(Kind kind) {
    Made others = make(kind);
    others.of(BYTES, stream).close();
    Made pool = kind.make(cuda, MemoryLimit.ofBytes(2 * BYTES));
    pool.of(BYTES, stream).close();
    stream.synchronize();
    script.note(kind.asks);
    script.note(kind.frees);
    for (long bytes : new long[] {2 * BYTES + 1, 3 * BYTES, 1L << 40}) {
      assertThatThrownBy(() -> pool.of(bytes, stream))
          .isInstanceOfAny(OutOfDeviceMemoryException.class, OutOfPinnedMemoryException.class);
    }
    assertThat(script.notes()).isEmpty();
    assertThat(pool.held.getAsLong()).isEqualTo(BYTES);
    assertThat(others.held.getAsLong()).isEqualTo(BYTES);
    pool.of(2 * BYTES, stream).close();
    assertThat(pool.held.getAsLong()).isEqualTo(2 * BYTES);
  }
}
