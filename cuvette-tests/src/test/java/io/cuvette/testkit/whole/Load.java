package io.cuvette.testkit.whole;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** Threads that queue work and callbacks without a pause, each on a stream of its own. */
final class Load implements AutoCloseable {
  private static final int THREADS = 32;

  private final Cuda cuda;
  private final AtomicLong rounds = new AtomicLong();
  private final CountDownLatch started = new CountDownLatch(THREADS);
  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean ended;

  private Load(Cuda cuda) {
    this.cuda = cuda;
  }

  /** Starts the threads; returns when all have begun. */
  static Load on(Cuda cuda) throws InterruptedException {
    Load load = new Load(cuda);
    for (int i = 0; i < THREADS; i++) {
      load.threads.add(Thread.ofPlatform().daemon().start(load::run));
    }
    load.started.await();
    return load;
  }

  private void run() {
    try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = cuda.allocate(4096, stream)) {
      started.countDown();
      while (!ended) {
        buffer.fill((byte) 1, stream);
        var _ = stream.addCallback(rounds::incrementAndGet);
      }
    } catch (IllegalStateException | CudaException e) {
      // The Cuda was closed beside this.
    }
  }

  /** How many callbacks have run. */
  long rounds() {
    return rounds.get();
  }

  @Override
  public void close() {
    ended = true;
    threads.forEach(Load::join);
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
