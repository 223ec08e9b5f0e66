package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.CupyRules.Arena;
import io.cuvette.CupyRules.Block;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A pool does what CuPy's rules say, operation by operation: a million of random programs over the
 * streams that exist from the start, those of threads and short-lived ones, which threads run in
 * turns.
 */
@Timeout(600)
class CupyRulesTest {
  private static final int PROGRAMS = 50;
  private static final int TURNS = 40;
  private static final int OPERATIONS_OF_A_TURN = 500;
  private static final int THREADS = 3;
  private static final int STREAMS = 5;
  private static final int MOST_LIVE = 64;
  private static final long LIMIT = 1500 * CupyRules.UNIT;
  private static final long SEED = Long.getLong("cuvette.seed", 1);

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.OFF));
  private final CudaDevice device = cuda.device(0);
  private final List<ExecutorService> threads =
      Stream.generate(() -> Executors.newSingleThreadExecutor()).limit(THREADS).toList();

  @AfterEach
  void close() {
    threads.forEach(ExecutorService::shutdown);
    cuda.close();
  }

  @Test
  void everyOperation_doesWhatTheRulesSay() throws Exception {
    for (int i = 0; i < PROGRAMS; i++) {
      PoolOptions options = PoolOptions.DEFAULTS.withCrossStreamBytes(Long.MAX_VALUE);
      long limit = i % 3 == 0 ? LIMIT : Long.MAX_VALUE;
      boolean ofThreads = i % 3 == 1;
      if (limit == LIMIT) {
        options = options.withLimit(MemoryLimit.ofBytes(LIMIT));
      }
      SplittableRandom random = new SplittableRandom(SEED * PROGRAMS + i);
      try (MemoryPool pool = new MemoryPool(cuda, options)) {
        Program program = new Program(pool, new CupyRules(limit), random, ofThreads);
        for (int turn = 0; turn < TURNS; turn++) {
          int thread = program.random.nextInt(THREADS);
          threads.get(thread).submit(() -> program.run(thread)).get();
        }
        program.end();
      } catch (ExecutionException e) {
        throw new AssertionError("seed=%d, program %d".formatted(SEED, i), e.getCause());
      }
    }
  }

  /** A stream, and what the rules know of it. */
  private record Known(CudaStream stream, Arena arena) {}

  /** A buffer, and what the rules know of it. */
  private record Lent(Buffer buffer, Block block) {}

  private final class Program {
    private final MemoryPool pool;
    private final CupyRules rules;
    private final SplittableRandom random;
    private final List<Known> streams = new ArrayList<>();
    private final List<Arena> ofThreads = new ArrayList<>();
    private final List<Lent> live = new ArrayList<>();

    /** Either threads use their own streams, which no other thread can ask, or streams end. */
    private final boolean areOfThreads;

    Program(MemoryPool pool, CupyRules rules, SplittableRandom random, boolean areOfThreads) {
      this.pool = pool;
      this.rules = rules;
      this.random = random;
      this.areOfThreads = areOfThreads;
      streams.add(new Known(device.nullStream(), rules.open()));
      streams.add(new Known(device.legacyStream(), rules.open()));
      while (streams.size() < STREAMS) {
        streams.add(newStream());
      }
      for (int i = 0; i < THREADS; i++) {
        ofThreads.add(rules.open());
      }
    }

    private Known newStream() {
      return new Known(device.createStream(StreamOptions.NON_BLOCKING), rules.open());
    }

    void run(int thread) {
      Known own = new Known(device.perThreadStream(), ofThreads.get(thread));
      for (int i = 0; i < OPERATIONS_OF_A_TURN; i++) {
        int choice = random.nextInt(1000);
        if (choice < 500) {
          allocate(choice < 100 && areOfThreads ? own : any());
        } else if (choice < 960) {
          closeOne();
        } else if (choice < 965) {
          use();
        } else if (choice < 995) {
          check();
        } else {
          rarely(choice);
        }
      }
      check();
    }

    private void rarely(int choice) {
      switch (choice) {
        case 995, 996 -> replaceStream();
        case 997, 998 -> {
          Known one = any();
          assertThat(pool.freeAllBlocks(one.stream)).isEqualTo(rules.release(one.arena));
        }
        default -> assertThat(pool.freeAllBlocks()).isEqualTo(rules.release(null));
      }
      check();
    }

    private Known any() {
      return streams.get(random.nextInt(streams.size()));
    }

    private void allocate(Known on) {
      long most = random.nextInt(50) == 0 ? 2000 : 1L << random.nextInt(7);
      long bytes = 1 + random.nextLong(most * CupyRules.UNIT);
      try {
        Buffer buffer = pool.allocate(bytes, on.stream);
        live.add(new Lent(buffer, rules.allocated(on.arena, bytes, buffer.address())));
      } catch (OutOfDeviceMemoryException e) {
        rules.refused(on.arena, bytes);
      }
      if (live.size() > MOST_LIVE) {
        closeOne();
      }
    }

    private void closeOne() {
      if (!live.isEmpty()) {
        Lent lent = live.remove(random.nextInt(live.size()));
        lent.buffer.close();
        rules.freed(lent.block);
      }
    }

    /** A stream that is done by now keeps nothing. */
    private void use() {
      if (!live.isEmpty()) {
        Buffer buffer = live.get(random.nextInt(live.size())).buffer;
        CudaStream by = any().stream;
        buffer.fill((byte) 1, by);
        by.synchronize();
      }
    }

    private void replaceStream() {
      if (areOfThreads) {
        return;
      }
      Known old = streams.set(2 + random.nextInt(STREAMS - 2), newStream());
      old.stream.close();
      rules.close(old.arena);
    }

    private void check() {
      PoolStats stats = pool.stats();
      assertThat(stats.usedBytes()).isEqualTo(rules.used);
      assertThat(stats.heldBytes()).isEqualTo(rules.held);
      assertThat(stats.freeBytes()).isEqualTo(rules.held - rules.used);
      assertThat(stats.freeBlocks()).isEqualTo(rules.freeBlocks());
      assertThat(stats.usedBlocks()).isEqualTo(live.size());
      assertThat(stats.chunks()).isEqualTo(rules.allocations());
      assertThat(stats.largestFreeBytes()).isEqualTo(rules.largestFree());
    }

    void end() {
      while (!live.isEmpty()) {
        closeOne();
      }
      check();
      assertThat(pool.freeAllBlocks()).isEqualTo(rules.release(null));
      assertThat(rules.held).isZero();
      check();
      streams.subList(2, STREAMS).forEach(known -> known.stream.close());
    }
  }
}
