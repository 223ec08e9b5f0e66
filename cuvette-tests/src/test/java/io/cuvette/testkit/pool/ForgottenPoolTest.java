package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Pools that nobody closed and nobody reaches any more give their memory back. */
class ForgottenPoolTest {
  private static final int BYTES = 1 << 20;
  private static final int POOLS = 4_000;

  @CudaTest(tidy = false)
  void forgottenPools_giveTheirCachedMemoryBack_andAreReported(Subject subject)
      throws InterruptedException {
    Cuda cuda = subject.open(options -> options);
    Forgetting.of(3, () -> used(new MemoryPool(cuda)));
    Forgetting.of(2, () -> used(new PinnedMemoryPool(cuda)));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 5)).isTrue();
    assertThat(subject.leaks())
        .allMatch(leak -> leak.bytes() == BYTES && leak.site() != null)
        .filteredOn(leak -> leak.what().startsWith("MemoryPool"))
        .hasSize(3);
    assertThat(subject.leaks())
        .filteredOn(leak -> leak.what().startsWith("PinnedMemoryPool"))
        .hasSize(2);
    assertThat(cuda.openObjects()).isEmpty();
    if (subject.isSimulated()) {
      assertThat(liveBytes(cuda)).isZero();
    }
  }

  /** Simulated devices alone tell; others work for themselves, too. */
  private static long liveBytes(Cuda cuda) {
    try (Cuda fresh = Cuda.open(CudaOptions.simulated())) {
      return fresh.device(0).memoryInfo().freeBytes() - cuda.device(0).memoryInfo().freeBytes();
    }
  }

  @CudaTest(tidy = false)
  void buffersOfAForgottenPool_staysValid_andGoBackWhenClosed(Subject subject)
      throws InterruptedException {
    Cuda cuda = subject.open(options -> options);
    List<Buffer> kept = new ArrayList<>();
    Forgetting.of(() -> kept.add(new MemoryPool(cuda).allocate(BYTES)));
    Forgetting.of(() -> kept.add(new PinnedMemoryPool(cuda).allocate(BYTES)));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 2)).isTrue();
    for (Buffer buffer : kept) {
      buffer.fill((byte) 7);
      buffer.slice(8).fill((byte) 8);
      buffer.close();
    }
    cuda.device(0).synchronize();
    if (subject.isSimulated()) {
      assertThat(liveBytes(cuda)).isZero();
    }
  }

  @CudaTest(tidy = false)
  void poolsAndTheirBuffers_forgottenTogether_giveEverythingBack(Subject subject)
      throws InterruptedException {
    Cuda cuda = subject.open(options -> options);
    Forgetting.of(10, () -> new MemoryPool(cuda).allocate(BYTES));
    Forgetting.of(10, () -> new PinnedMemoryPool(cuda).allocate(BYTES));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 40)).isTrue();
    if (subject.isSimulated()) {
      assertThat(liveBytes(cuda)).isZero();
    }
  }

  /** Closing looks for what was forgotten, when nothing new can be made any more. */
  @CudaTest(tidy = false)
  void poolsForgottenWithMemory_endWithTheirCuda(Subject subject) throws InterruptedException {
    List<Function<Cuda, Object>> forgotten =
        List.of(
            cuda -> used(new MemoryPool(cuda)),
            cuda -> new MemoryPool(cuda).allocate(BYTES),
            cuda -> used(new ElasticMemoryPool(cuda)),
            cuda -> new ElasticMemoryPool(cuda).allocate(BYTES),
            cuda -> used(new PinnedMemoryPool(cuda)),
            cuda -> new PinnedMemoryPool(cuda).allocate(BYTES),
            cuda -> new AsyncMemoryPool(cuda).allocate(BYTES));
    try (Cuda watching = subject.open(options -> options)) {
      for (Function<Cuda, Object> one : forgotten) {
        int before = subject.leaks().size();
        Cuda cuda = subject.open(options -> options);
        Forgetting.of(3, () -> one.apply(cuda));
        Forgetting.collectAll();
        cuda.close();
        assertThat(subject.leaks()).hasSizeGreaterThanOrEqualTo(before + 3);
        if (subject.isSimulated()) {
          assertThat(liveBytes(watching)).isZero();
        }
      }
    }
  }

  /** A pool that allocates at the moment is reachable, though nothing refers to it afterwards. */
  @CudaTest(tidy = false)
  void poolInsideItsOwnUpstream_isNotForgotten(Cuda cuda) {
    for (int i = 0; i < 5; i++) {
      PoolOptions collecting =
          PoolOptions.DEFAULTS.withUpstream((bytes, stream) -> {
            System.gc();
            cuda.device(0).createStream().close(); // which looks for what was forgotten
            return MemoryResource.direct().allocate(bytes, stream);
          });
      new MemoryPool(cuda, collecting).allocate(100).close();
    }
  }

  /** What is short is found with the help of the collector, as for buffers. */
  @Test
  void memoryOfForgottenPools_isFoundWhenItIsShort() {
    try (Cuda cuda =
        Cuda.open(
            CudaOptions.DEFAULTS
                .withDevice("sim:memory=64MiB")
                .withMemoryLimit(MemoryLimit.none())
                .withLeakListener(_ -> {}))) {
      for (int i = 0; i < 100; i++) {
        used(new MemoryPool(cuda), 40 << 20);
      }
    }
  }

  /** Whoever makes a pool takes back what others forgot: nothing else has to happen. */
  @Test
  void manyForgottenPools_leaveHeapAndMemoryFlat() throws InterruptedException {
    AtomicLong reported = new AtomicLong();
    long before = heapBytes();
    try (Cuda cuda =
        Cuda.open(
            CudaOptions.simulated()
                .withLeakLevel(LeakLevel.COUNT)
                .withLeakListener(_ -> reported.incrementAndGet()))) {
      Forgetting.of(POOLS, () -> new MemoryPool(cuda));
      Forgetting.of(POOLS, () -> new PinnedMemoryPool(cuda));
      Forgetting.of(POOLS / 10, () -> new AsyncMemoryPool(cuda));
      Forgetting.of(POOLS / 10, () -> used(new MemoryPool(cuda), 512));
      Forgetting.of(POOLS / 10, () -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)));
      assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 2 * POOLS + 2 * (POOLS / 10)))
          .isTrue();
      assertThat(reported).hasValue(cuda.leaksFound());
      assertThat(liveBytes(cuda)).isZero();
      assertThat(Forgetting.collectUntil(() -> heapBytes() - before < POOLS * 256L)).isTrue();
    }
  }

  private static long heapBytes() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  private static Object used(MemoryPool pool) {
    return used(pool, BYTES);
  }

  private static Object used(ElasticMemoryPool pool) {
    pool.allocate(BYTES).close();
    return pool;
  }

  private static Object used(MemoryPool pool, long bytes) {
    try (Buffer buffer = pool.allocate(bytes)) {
      buffer.fill((byte) 1);
    }
    return pool;
  }

  private static Object used(PinnedMemoryPool pool) {
    try (PinnedBuffer buffer = pool.allocate(BYTES)) {
      buffer.fill((byte) 1);
    }
    return pool;
  }
}
