package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.AtOnce;
import io.cuvette.testkit.support.OneChunk;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Timeout;

/** Page-locked memory is out only when it is: not while it is there for who waits or collects. */
@Timeout(300)
class PinnedShortageTest {
  private static final int THREADS = 8;
  private static final int STEPS = 300;
  private static final int BLOCK = 64 << 10;

  private final AtOnce threads = new AtOnce();

  /** There is a block for each thread. */
  @CudaTest(sanitized = false)
  void threadsWithBusyStreams_allGetWhatIsThere(Cuda cuda, @NonBlocking CudaStream shared)
      throws InterruptedException {
    try (PinnedMemoryPool pool = limited(cuda, THREADS * BLOCK)) {
      threads.run(THREADS, seed -> useBusily(cuda, pool, shared, new SplittableRandom(seed)));
      cuda.device(0).synchronize();
      pool.assertConsistent();
      assertThat(pool.usedBytes()).isZero();
      assertThat(pool.stats().outOfMemories()).isZero();
    }
  }

  private static void useBusily(
      Cuda cuda, PinnedMemoryPool pool, CudaStream shared, SplittableRandom random) {
    try (CudaStream own = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      for (int i = 0; i < STEPS; i++) {
        CudaStream stream = random.nextBoolean() ? own : shared;
        try (PinnedBuffer buffer = pool.allocate(1 + random.nextInt(BLOCK))) {
          buffer.fill((byte) i, stream);
        }
      }
    }
  }

  @CudaTest(tidy = false)
  void threadsThatDropAllBuffers_getNoErrors(Cuda cuda) throws InterruptedException {
    try (PinnedMemoryPool pool = limited(cuda, 64 * BLOCK)) {
      threads.run(
          THREADS,
          _ -> {
            for (int i = 0; i < 200; i++) {
              assertThat(pool.allocate(BLOCK).byteSize()).isEqualTo(BLOCK);
            }
          });
      assertThat(pool.stats().outOfMemories()).isZero();
    }
  }

  /** They come back when the stream that used them has done its work. */
  @CudaTest(tidy = false, sanitized = false)
  void threadsThatDropBuffersInUse_getNoErrors(Cuda cuda, CudaStream other)
      throws InterruptedException {
    try (PinnedMemoryPool pool = limited(cuda, 64 * BLOCK)) {
      threads.run(
          THREADS,
          seed -> {
            for (int i = 0; i < 100; i++) {
              pool.allocate(BLOCK).fill((byte) seed, other);
            }
          });
      assertThat(pool.stats().outOfMemories()).isZero();
    }
  }

  @CudaTest
  void upstreamsLastRefusal_isTheCause_andItIsNotAskedForNothing(Subject subject) {
    List<CudaException> refusals = new ArrayList<>();
    PinnedPoolOptions options =
        PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> {
          String text = "quota of team 7, refusal " + refusals.size();
          refusals.add(new CudaException(CudaStatus.OUT_OF_MEMORY, "team(" + bytes + ")", text));
          throw refusals.getLast();
        });
    // Without the collector, after each run of which it would be asked again.
    try (Cuda cuda = subject.open(defaults -> defaults.withLeakLevel(LeakLevel.OFF));
        PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      var e = catchThrowableOfType(OutOfPinnedMemoryException.class, () -> pool.allocate(512));
      assertThat(e).hasCause(refusals.getLast());
      assertThat(e.getSuppressed())
          .containsExactlyElementsOf(refusals.subList(0, refusals.size() - 1));
      assertThat(refusals).as("at first, and when everything was tried").hasSize(2);
    }
  }

  /** What a limit of its own makes short is no reason to take the others' caches. */
  @CudaTest
  void otherPoolsCaches_areKept_ifOnlyTheLimitIsShort(Cuda cuda) {
    try (PinnedMemoryPool idle = new PinnedMemoryPool(cuda);
        PinnedMemoryPool pool = limited(cuda, BLOCK)) {
      idle.allocate(BLOCK).close();
      long cached = idle.totalBytes();
      try (PinnedBuffer _ = pool.allocate(BLOCK)) {
        assertThatThrownBy(() -> pool.allocate(512)).isInstanceOf(OutOfPinnedMemoryException.class);
      }
      assertThat(idle.totalBytes()).isEqualTo(cached).isPositive();
    }
  }

  /** Nor is it one to wait for work: what comes back of a closed pool does not raise the limit. */
  @CudaTest
  void otherPoolsWork_isNotWaitedFor_ifOnlyTheLimitIsShort(
      Cuda cuda, @NonBlocking CudaStream busy) {
    PinnedMemoryPool other = new PinnedMemoryPool(cuda);
    PinnedBuffer used = other.allocate(BLOCK);
    try (PinnedMemoryPool pool = limited(cuda, BLOCK);
        PinnedBuffer _ = pool.allocate(BLOCK)) {
      try (Gate _ = Gate.on(busy)) {
        used.fill((byte) 1, busy);
        used.close();
        other.close();
        assertThatThrownBy(() -> pool.allocate(512)).isInstanceOf(OutOfPinnedMemoryException.class);
        assertThat(busy.isDone()).isFalse();
      }
      busy.synchronize();
    }
  }

  /** Upstream lets the work go on, and has memory once that is done: only waiting helps. */
  @CudaTest
  void memoryOfAClosedPool_isWaitedFor_ifTheLimitHasRoom(Subject subject) {
    // Without the collector, which takes its time.
    Cuda cuda = subject.open(defaults -> defaults.withLeakLevel(LeakLevel.OFF));
    List<PinnedBuffer> chunks = new ArrayList<>();
    List<Gate> gates = new ArrayList<>();
    PinnedPoolOptions options =
        PinnedPoolOptions.DEFAULTS
            .withLimit(MemoryLimit.ofBytes(BLOCK))
            .withUpstream(bytes -> {
              if (chunks.stream().anyMatch(chunk -> !chunk.isClosed())) {
                gates.forEach(Gate::open);
                throw new CudaException(CudaStatus.OUT_OF_MEMORY, "one()", "one at a time");
              }
              chunks.add(cuda.directPinned().allocate(bytes));
              return chunks.getLast();
            });
    try (CudaStream busy = cuda.device(0).createStream();
        PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      PinnedMemoryPool closed = new PinnedMemoryPool(cuda, options);
      PinnedBuffer used = closed.allocate(BLOCK);
      gates.add(Gate.on(busy));
      for (int i = 0; i < STEPS; i++) {
        used.fill((byte) i, busy);
      }
      used.close();
      closed.close();
      try (PinnedBuffer found = pool.allocate(BLOCK)) {
        assertThat(found.byteSize()).isEqualTo(BLOCK);
        assertThat(busy.isDone()).isTrue();
      }
    }
  }

  @CudaTest
  void upstreamThatHasMemoryAfterARelease_isAskedAgain(Cuda cuda) {
    OneChunk upstream = new OneChunk(cuda);
    PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withUpstream(upstream);
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      pool.allocate(512).close();
      pool.allocate(1024).close();
      assertThat(upstream.count()).isEqualTo(2);
    }
  }

  /** What is released now is worth a request at once, before work is waited for. */
  @CudaTest(simulatedOnly = true)
  void upstreamThatHasMemoryAfterARelease_isAskedBeforeAWait(Subject subject) {
    // Without the collector, which helps in the end.
    Cuda cuda = subject.open(defaults -> defaults.withLeakLevel(LeakLevel.OFF));
    List<PinnedBuffer> given = new ArrayList<>();
    try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream order = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        PinnedMemoryResource chunks = new PinnedMemoryResource(cuda); // its frees wait for nothing
        PinnedMemoryPool pool = new PinnedMemoryPool(cuda, twoOf(chunks, order, given))) {
      PinnedBuffer pending = pool.allocate(BLOCK);
      PinnedBuffer idle = pool.allocate(2 * BLOCK);
      try (Gate _ = Gate.on(stream)) {
        pending.fill((byte) 1, stream);
        pending.close();
        idle.close();
        pool.allocate(4 * BLOCK).close();
        assertThat(stream.isDone()).isFalse();
      }
      assertThat(given).hasSize(3);
      stream.synchronize();
    }
  }

  /** An upstream of a pool that is out of memory while two chunks are open. */
  private static PinnedPoolOptions twoOf(
      PinnedMemoryResource chunks, CudaStream order, List<PinnedBuffer> given) {
    return PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> {
      if (given.stream().filter(chunk -> !chunk.isClosed()).count() == 2) {
        throw new CudaException(CudaStatus.OUT_OF_MEMORY, "two()", "two at a time");
      }
      given.add(chunks.allocate(bytes, order));
      order.synchronize(); // whoever gets it writes at once
      return given.getLast();
    });
  }

  @CudaTest
  void poolOfTheDriverWithoutRoom_isOutOfPinnedMemory(Cuda cuda) {
    var options = PinnedMemoryResourceOptions.DEFAULTS.withMaxBytes(1 << 20);
    try (PinnedMemoryResource resource = new PinnedMemoryResource(cuda, options)) {
      var e =
          catchThrowableOfType(
              OutOfPinnedMemoryException.class, () -> resource.allocate(1L << 40).close());
      assertThat(e.requestedBytes()).isEqualTo(1L << 40);
      assertThat(e).hasCauseInstanceOf(CudaException.class).hasMessageContaining("requested=");
    }
  }

  private static PinnedMemoryPool limited(Cuda cuda, long bytes) {
    return new PinnedMemoryPool(
        cuda, PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(bytes)));
  }
}
