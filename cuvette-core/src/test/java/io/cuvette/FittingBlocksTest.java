package io.cuvette;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.index.Seeds;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Threads that hold no more blocks together than the limit has room for, all of one size, so that
 * nothing can lie badly: whatever streams and other threads do with the rest, no refusal is right.
 */
@Timeout(600)
class FittingBlocksTest {
  private static final int SEEDS = 20;
  private static final int THREADS = 4;
  private static final int STREAMS = 3;
  private static final int BLOCKS = 48;
  private static final int STEPS = 250;

  /** Half a page: what moves has room for another block. */
  private static final long BYTES = 1 << 20;

  private static final class Worker {
    private final MemoryResource pool;
    private final List<CudaStream> streams;
    private final Semaphore room;
    private final SplittableRandom random;
    private final Deque<Buffer> own = new ArrayDeque<>();

    Worker(MemoryResource pool, List<CudaStream> streams, Semaphore room, SplittableRandom random) {
      this.pool = pool;
      this.streams = streams;
      this.room = room;
      this.random = random;
    }

    void run() {
      for (int step = 0; step < STEPS; step++) {
        Await.until(this::hasRoom);
        Buffer block = pool.allocate(BYTES, anyStream());
        use(block);
        own.add(block);
        if (random.nextInt(3) > 0) {
          closeOne();
        }
      }
      while (!own.isEmpty()) {
        closeOne();
      }
    }

    private boolean hasRoom() {
      boolean has = room.tryAcquire();
      if (!has && !own.isEmpty()) {
        closeOne();
      }
      return has;
    }

    private void use(Buffer block) {
      if (random.nextInt(3) == 0) {
        block.fill((byte) 1, anyStream());
      }
      if (random.nextInt(4) == 0) {
        block.recordUse(anyStream());
      }
    }

    private CudaStream anyStream() {
      return streams.get(random.nextInt(STREAMS));
    }

    private void closeOne() {
      own.remove().close();
      room.release();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"memory", "elastic"})
  void blocksThatFit_areNeverRefused(String kind) {
    Seeds.forEach(SEEDS, random -> run(kind, random));
  }

  /** The stream is never idle, but what it freed is done with the work of that time. */
  @ParameterizedTest
  @ValueSource(strings = {"memory", "elastic"})
  void whatAStreamFreed_isHadByAnother_howeverMuchFollowsThere(String kind) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool memory = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        CudaStream busy = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        CudaStream other = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING)) {
      memory.setLimit(MemoryLimit.ofBytes(BLOCKS * BYTES));
      elastic.setLimit(MemoryLimit.ofBytes(BLOCKS * BYTES));
      MemoryResource pool = kind.equals("memory") ? memory : elastic;
      AtomicBoolean over = new AtomicBoolean();
      Thread feeder = Thread.ofPlatform().start(() -> feed(busy, over));
      try {
        pool.allocate(BLOCKS * BYTES, busy).close(); // one piece, which is not released below
        for (int round = 0; round < 5; round++) {
          List<Buffer> own = new ArrayList<>();
          for (int i = 0; i < BLOCKS; i++) {
            own.add(pool.allocate(BYTES, busy));
          }
          for (int i = 0; i < BLOCKS; i += 2) {
            own.get(i).fill((byte) 1, busy);
            own.get(i).close();
          }
          for (int i = 0; i < BLOCKS; i += 2) {
            own.set(i, pool.allocate(BYTES, other));
          }
          own.forEach(Buffer::close);
        }
      } finally {
        over.set(true);
        Await.until(() -> !feeder.isAlive());
      }
    }
  }

  /** Has a stream work until it is enough: each callback returns once the next is queued. */
  private static void feed(CudaStream stream, AtomicBoolean over) {
    AtomicInteger queued = new AtomicInteger();
    while (!over.get()) {
      int number = queued.get();
      CompletableFuture<?> _ =
          stream.addCallback(() -> Await.until(() -> queued.get() > number + 1 || over.get()));
      queued.incrementAndGet();
    }
    stream.synchronize();
  }

  private static void run(String kind, SplittableRandom random) {
    String device = "sim:memory=2GiB,seed=" + random.nextInt(1_000_000);
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDevice(device));
        MemoryPool memory = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      memory.setLimit(MemoryLimit.ofBytes(BLOCKS * BYTES));
      elastic.setLimit(MemoryLimit.ofBytes(BLOCKS * BYTES));
      List<CudaStream> streams = new ArrayList<>();
      for (int i = 0; i < STREAMS; i++) {
        streams.add(cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING));
      }
      MemoryResource pool = kind.equals("memory") ? memory : elastic;
      useAll(pool, streams, random);
      streams.forEach(CudaStream::close);
    }
  }

  private static void useAll(
      MemoryResource pool, List<CudaStream> streams, SplittableRandom random) {
    Semaphore room = new Semaphore(BLOCKS, true);
    List<Worker> workers = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      workers.add(new Worker(pool, streams, room, random.split()));
    }
    OnThreads.run(
        THREADS,
        i -> {
          try {
            workers.get(i).run();
          } catch (RuntimeException | Error e) {
            room.release(BLOCKS); // the others need not wait
            throw e;
          }
        });
  }
}
