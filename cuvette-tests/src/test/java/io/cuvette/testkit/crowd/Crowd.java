package io.cuvette.testkit.crowd;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GrowableBuffer;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.support.TestKernels;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Threads that do steps at random, each with what all of them share; the last one is virtual.
 * Thread-safe.
 */
final class Crowd {
  private static final int THREADS = 4;
  private static final int STEPS = Integer.getInteger("cuvette.crowd.steps", 150);
  private static final long POOL_BYTES = 24 << 20;
  private static final long PINNED_BYTES = 8 << 20;
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  final Cuda cuda;
  final CudaDevice device;
  final MemoryPool cached;
  final ElasticMemoryPool elastic;
  final AsyncMemoryPool ordered;
  final PinnedMemoryPool pinned;
  final CudaKernel scale;
  final CudaKernel doNothing;

  /** Streams that anyone closes and captures, and those that nobody does. */
  final Bag<CudaStream> streams = new Bag<>(4);

  final List<CudaStream> quiet;

  final Bag<KeptBlock> kept = new Bag<>(20);
  final Bag<Buffer> buffers = new Bag<>(60);
  final Bag<PinnedBuffer> pinnedBuffers = new Bag<>(10);
  final Bag<ManagedBuffer> managed = new Bag<>(3);
  final Bag<GrowableBuffer> growables = new Bag<>(2);
  final Bag<CudaEvent> events = new Bag<>(6);
  final Bag<CudaGraph> graphs = new Bag<>(6);
  final Bag<CudaGraphExec> executables = new Bag<>(10);
  final Bag<MemoryResource> pools = new Bag<>(2);

  /** What another process shares: a pool as it is mapped here, and memory. */
  final Bag<DeviceMemoryResource> mapped = new Bag<>(2);

  final Bag<Exchanged> exchanged = new Bag<>(8);
  final Peer peer = new Peer();

  /** Completions that may fail, for what they are about may be closed or cancelled. */
  final Queue<CompletableFuture<?>> futures = new ConcurrentLinkedQueue<>();

  /** Completions of callbacks, which all run. */
  final Queue<CompletableFuture<?>> called = new ConcurrentLinkedQueue<>();

  final AtomicInteger callbacks = new AtomicInteger();

  private final long seed;
  private final List<CrowdStep> steps;
  private final Refusals refusals;
  private final CudaModule module;
  private final List<MemoryResource> free;
  private final SplittableRandom random;
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
  private final List<Thread> threads = new ArrayList<>();

  Crowd(Cuda cuda, long seed, List<CrowdStep> steps, Refusals refusals) {
    this.cuda = cuda;
    this.device = cuda.device(0);
    this.seed = seed;
    this.steps = steps;
    this.refusals = refusals;
    this.random = new SplittableRandom(seed);
    this.cached = new MemoryPool(cuda);
    this.elastic = new ElasticMemoryPool(cuda);
    this.ordered = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    this.pinned = new PinnedMemoryPool(cuda);
    cached.setLimit(MemoryLimit.ofBytes(POOL_BYTES));
    elastic.setLimit(MemoryLimit.ofBytes(POOL_BYTES));
    pinned.setLimit(MemoryLimit.ofBytes(PINNED_BYTES));
    this.module = TestKernels.launches(cuda);
    this.scale = module.kernel("scale");
    this.doNothing = module.kernel("doNothing");
    this.free = List.of(cached, cached, elastic, elastic, MemoryResource.direct());
    this.quiet = List.of(newStream(), newStream());
    for (int i = 0; i < 3; i++) {
      streams.add(newStream());
    }
  }

  private CudaStream newStream() {
    return device.createStream(StreamOptions.NON_BLOCKING);
  }

  /** Where memory comes from that is used in order. */
  MemoryResource resource(SplittableRandom random) {
    return random.nextInt(6) == 0 ? ordered : free(random);
  }

  /**
   * Where memory comes from that any stream may use at any time: it is there as soon as it is lent.
   */
  MemoryResource free(SplittableRandom random) {
    return free.get(random.nextInt(free.size()));
  }

  /** Starts the threads; returns once all of them have done some steps. */
  void start() throws InterruptedException {
    CountDownLatch some = new CountDownLatch(THREADS * (1 + random.nextInt(STEPS)));
    for (int i = 0; i < THREADS; i++) {
      SplittableRandom own = random.split();
      Runnable body = () -> work(own, some);
      boolean isVirtual = i == THREADS - 1;
      threads.add(isVirtual ? Thread.ofVirtual().start(body) : Thread.ofPlatform().start(body));
    }
    some.await();
  }

  private void work(SplittableRandom own, CountDownLatch some) {
    int left = STEPS;
    try {
      CrowdMember member = new CrowdMember(this, own);
      for (; left > 0 && failures.isEmpty(); left--) {
        some.countDown();
        step(member);
      }
      member.end();
    } catch (Throwable e) {
      note(e);
    } finally {
      for (; left > 0; left--) {
        some.countDown();
      }
    }
  }

  private void step(CrowdMember member) {
    try {
      steps.get(member.random.nextInt(steps.size())).run(member);
    } catch (Throwable e) {
      note(e);
    }
  }

  private void note(Throwable e) {
    if (!refusals.allow(e)) {
      failures.add(e);
    }
  }

  /** Waits for the threads: none hangs, and none has met an error that is not allowed. */
  void join() throws InterruptedException {
    for (Thread thread : threads) {
      if (!thread.join(PATIENCE)) {
        throw new AssertionError("hangs: " + stacks());
      }
    }
    for (Throwable failure : failures) {
      throw new AssertionError("seed %d: %s".formatted(seed, failure), failure);
    }
  }

  private static String stacks() {
    StringBuilder text = new StringBuilder();
    Thread.getAllStackTraces()
        .forEach((thread, frames) -> {
          text.append('\n').append(thread);
          for (StackTraceElement frame : frames) {
            text.append("\n    at ").append(frame);
          }
        });
    return text.toString();
  }

  /** Closes all there is, and looks for what is left in the pools. */
  void end() throws Exception {
    CrowdMember last = new CrowdMember(this, random);
    for (KeptBlock block : kept.takeAll()) {
      KeptSteps.end(last, block);
    }
    last.end();
    for (CompletableFuture<?> future : called) {
      CrowdMember.get(future);
    }
    closeShared();
    device.synchronize();
    for (CompletableFuture<?> future : futures) {
      try {
        CrowdMember.get(future);
      } catch (Exception e) {
        if (!refusals.allow(e)) {
          throw e;
        }
      }
    }
    device.synchronize();
    assertNothingLent();
    closePools();
  }

  private void closeShared() throws Exception {
    List<AutoCloseable> all = new ArrayList<>();
    all.addAll(buffers.takeAll());
    all.addAll(pinnedBuffers.takeAll());
    all.addAll(managed.takeAll());
    all.addAll(growables.takeAll());
    all.addAll(events.takeAll());
    all.addAll(executables.takeAll());
    all.addAll(graphs.takeAll());
    for (MemoryResource pool : pools.takeAll()) {
      all.add((AutoCloseable) pool);
    }
    all.addAll(streams.takeAll());
    all.addAll(quiet);
    for (AutoCloseable one : all) {
      one.close();
    }
    for (Exchanged one : exchanged.takeAll()) {
      one.close(this);
    }
    for (DeviceMemoryResource pool : mapped.takeAll()) {
      pool.close();
    }
    peer.close();
  }

  private void assertNothingLent() {
    for (PoolStats stats : List.of(cached.stats(), elastic.stats())) {
      assertThat(stats.usedBytes() + stats.pendingBytes() + stats.graphBytes())
          .as("lent: %s", stats)
          .isZero();
    }
    ordered.freeAllBlocks(); // what is closed, and kept for the next allocation of its stream
    assertThat(ordered.liveBytes() + ordered.usedBytes()).as("lent: %s", ordered).isZero();
    assertThat(pinned.stats().usedBytes() + pinned.stats().pendingBytes())
        .as("lent: %s", pinned.stats())
        .isZero();
    cached.assertConsistent();
    elastic.assertConsistent();
    pinned.assertConsistent();
  }

  private void closePools() {
    cached.close();
    elastic.close();
    ordered.close();
    pinned.close();
    module.close();
  }
}
