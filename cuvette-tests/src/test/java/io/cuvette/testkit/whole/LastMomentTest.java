package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads that allocate memory which a caching pool keeps, until its Cuda has ended. */
@Timeout(300)
class LastMomentTest {
  private static final int ROUNDS = 40;
  private static final int THREADS = 4;
  private static final int EACH = 8;

  @Test
  void bufferOfACachingPool_isClosedWithItsCuda_howeverLateItWasLent() throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      assertThat(openAfterTheEnd(round)).as("round %d", round).isEmpty();
    }
  }

  private static List<Buffer> openAfterTheEnd(int round) throws InterruptedException {
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    MemoryPool pool = cuda.defaultMemoryPool();
    CudaStream stream = cuda.device(0).createStream();
    Queue<Buffer> last = new ConcurrentLinkedQueue<>();
    CountDownLatch started = new CountDownLatch(THREADS);
    try (var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      for (int i = 0; i < THREADS; i++) {
        threads.execute(() -> allocateToTheEnd(pool, stream, started, last));
      }
      started.await();
      for (int spin = 0; spin < round * 1_000; spin++) {
        Thread.onSpinWait();
      }
      cuda.close();
    }
    return last.stream().filter(buffer -> !buffer.isClosed()).toList();
  }

  private static void allocateToTheEnd(
      MemoryPool pool, CudaStream stream, CountDownLatch started, Queue<Buffer> last) {
    List<Buffer> mine = new ArrayList<>();
    for (int i = 0; i < EACH; i++) {
      mine.add(pool.allocate(512, stream));
    }
    started.countDown();
    try {
      for (int i = 0; ; i = (i + 1) % EACH) {
        mine.get(i).close();
        mine.set(i, pool.allocate(512, stream));
      }
    } catch (IllegalStateException e) {
      last.addAll(mine); // the pool is closed
    }
  }
}
