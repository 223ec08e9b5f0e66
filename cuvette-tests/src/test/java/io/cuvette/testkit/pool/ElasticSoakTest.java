package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.HeldBySystem;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.TestReporter;
import org.junit.jupiter.api.Timeout;

/**
 * An elastic pool near its limit, for as long as {@code -Dcuvette.soak.seconds} says: after each
 * round all has come back, and the process holds no more than after the first.
 */
class ElasticSoakTest {
  private static final long SECONDS = Long.getLong("cuvette.soak.seconds", 2);
  private static final int ROUNDS = 8;

  /** Of each thread in each round, on the slowest machine too. */
  private static final int LEAST_STEPS = 25;

  private static final int THREADS = 4;
  private static final int STREAMS = 3;
  private static final long LIMIT = 16L << 20;

  /** The JVM and the driver map something now and then; what is lost in each round is far more. */
  private static final long MAY_DIFFER = 200;

  private static final long MAY_DIFFER_BYTES = 8L << 20;

  private final Queue<Block> shared = new ConcurrentLinkedQueue<>();
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
  private final AtomicLong operations = new AtomicLong();
  private final AtomicLong refusals = new AtomicLong();

  /** A block and what all of its first bytes are. */
  private record Block(Buffer buffer, byte value) {}

  /** What is held from outside of the pool. */
  private record Held(long freeBytes, int descriptors, int mappings) {
    static Held now(Cuda cuda) throws IOException {
      return new Held(
          cuda.device(0).memoryInfo().freeBytes(),
          HeldBySystem.descriptors(),
          HeldBySystem.mappings().size());
    }
  }

  @CudaTest
  @Timeout(value = 2, unit = TimeUnit.HOURS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void nothingGrows_howeverLongItIsUsed(Subject subject, Cuda cuda, TestReporter reporter)
      throws Exception {
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(LIMIT));
    SplittableRandom random = new SplittableRandom(subject.seed());
    long moved = 0;
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options)) {
      Held first = null;
      Held last = null;
      for (int round = 0; round < ROUNDS; round++) {
        round(pool, cuda, random);
        last = Held.now(cuda);
        first = Objects.requireNonNullElse(first, last);
        assertThat(last.freeBytes).isGreaterThanOrEqualTo(first.freeBytes - MAY_DIFFER_BYTES);
        assertThat(last.descriptors).isLessThanOrEqualTo(first.descriptors + 8);
        assertThat((long) last.mappings).isLessThanOrEqualTo(first.mappings + MAY_DIFFER);
      }
      moved = pool.pages().movedPieces();
      reporter.publishEntry(
          "soak",
          "%d operations, %d refused, %d pieces moved; after the first round %s, after the last %s"
              .formatted(operations.get(), refusals.get(), moved, first, last));
    }
    assertThat(refusals).as("was at its limit").hasPositiveValue();
    assertThat(moved).as("moved pieces").isPositive();
  }

  /** Threads on streams of their own and of others; in the end all has come back. */
  private void round(ElasticMemoryPool pool, Cuda cuda, SplittableRandom random)
      throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS) / ROUNDS;
    List<CudaStream> streams = new ArrayList<>();
    for (int i = 0; i < STREAMS; i++) {
      streams.add(cuda.device(0).createStream());
    }
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      SplittableRandom own = random.split();
      threads.add(Thread.ofPlatform().start(() -> work(pool, streams, own, end)));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    for (Block block = shared.poll(); block != null; block = shared.poll()) {
      block.buffer.close();
    }
    streams.forEach(CudaStream::close); // with work queued, some of it
    cuda.device(0).synchronize();
    pool.assertConsistent();
    assertThat(pool.stats().usedBytes() + pool.stats().pendingBytes()).isZero();
    pool.freeAllBlocks();
    assertThat(pool.stats().heldBytes()).isZero();
    assertThat(pool.pages().pieces()).isZero();
  }

  private void work(
      ElasticMemoryPool pool, List<CudaStream> streams, SplittableRandom random, long end) {
    try {
      for (int i = 0; i < LEAST_STEPS || System.nanoTime() < end; i++) {
        step(pool, streams.get(random.nextInt(STREAMS)), random);
        operations.incrementAndGet();
      }
    } catch (Throwable e) {
      failures.add(e);
    }
  }

  private void step(ElasticMemoryPool pool, CudaStream stream, SplittableRandom random) {
    int choice = random.nextInt(1000);
    if (choice < 550) {
      allocate(pool, stream, random);
    } else if (choice < 990) {
      close(shared.poll(), stream, random);
    } else if (choice < 998) {
      pool.trim(random.nextLong(LIMIT));
    } else {
      pool.freeAllBlocks();
    }
  }

  private void allocate(ElasticMemoryPool pool, CudaStream stream, SplittableRandom random) {
    long bytes = 1 + random.nextLong(random.nextBoolean() ? LIMIT / 4 : 256 << 10);
    try {
      Buffer buffer = pool.allocate(bytes, stream);
      byte value = (byte) random.nextInt();
      buffer.fill(value, stream);
      shared.add(new Block(buffer, value));
    } catch (OutOfDeviceMemoryException e) {
      refusals.incrementAndGet();
      for (int i = 0; i < 4; i++) {
        close(shared.poll(), stream, random);
      }
    }
  }

  /** By any thread, sometimes with work of another stream that is still under way. */
  private static void close(@Nullable Block block, CudaStream stream, SplittableRandom random) {
    if (block == null) {
      return;
    }
    Buffer buffer = block.buffer;
    if (random.nextInt(3) == 0) {
      stream.waitFor(buffer.stream());
      assertThat(at(buffer, 0, stream)).isEqualTo(block.value);
      assertThat(at(buffer, buffer.byteSize() - 1, stream)).isEqualTo(block.value);
      buffer.fill((byte) 0, stream);
    }
    buffer.close();
  }

  private static byte at(Buffer buffer, long offset, CudaStream stream) {
    byte[] read = new byte[1];
    try (Scope _ = stream.use()) {
      buffer.slice(offset, 1).copyTo(MemorySegment.ofArray(read));
    }
    return read[0];
  }
}
