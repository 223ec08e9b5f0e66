package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Timeout;

/** Memory of one stream that another used is freed by threads, and the other way round as well. */
@Timeout(60)
class CrosswiseFreesTest {
  private static final int ROUNDS = 400;
  private static final int BYTES = 4096;

  private static void use(CudaStream home, CudaStream user) {
    for (int i = 0; i < ROUNDS; i++) {
      try (Buffer buffer = MemoryResource.async().allocate(BYTES, home)) {
        user.waitFor(home);
        buffer.fill((byte) 1, user);
      }
    }
  }

  @CudaTest(seeds = 4)
  void threadsDoNotWaitForEachOther(
      Cuda cuda, @NonBlocking CudaStream first, @NonBlocking CudaStream second)
      throws InterruptedException {
    // Others have the handles, and could capture.
    assertThat(first.handle()).isNotEqualTo(second.handle());
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      CudaStream home = i % 2 == 0 ? first : second;
      CudaStream user = i % 2 == 0 ? second : first;
      threads.add(
          Thread.ofPlatform()
              .daemon()
              .uncaughtExceptionHandler((_, e) -> failures.add(e))
              .start(() -> use(home, user)));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    cuda.device(0).synchronize();
  }
}
