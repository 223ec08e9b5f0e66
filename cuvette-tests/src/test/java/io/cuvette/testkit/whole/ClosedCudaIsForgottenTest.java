package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

/** Threads that used a Cuda do not keep it in the heap once it is closed. */
class ClosedCudaIsForgottenTest {
  private static final Duration LONG = Duration.ofSeconds(30);

  @Test
  void closedCuda_isCollected_thoughItsThreadsLive() throws Exception {
    try (ExecutorService others = Executors.newFixedThreadPool(2)) {
      List<Reference<Object>> opened = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        open(opened, others);
      }
      long end = System.nanoTime() + LONG.toNanos();
      while (opened.stream().anyMatch(each -> each.get() != null) && System.nanoTime() < end) {
        System.gc();
      }
      assertThat(opened).allMatch(each -> each.get() == null);
    }
  }

  private static void open(List<Reference<Object>> opened, ExecutorService others)
      throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      opened.add(new WeakReference<>(cuda));
      opened.add(new WeakReference<>(cuda.driver()));
      use(cuda);
      others.submit(() -> use(cuda)).get();
    }
  }

  private static void use(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(64)) {
      buffer.fill((byte) 1);
      CudaStream mine = cuda.device(0).perThreadStream();
      buffer.fill((byte) 1, mine);
      mine.addCallback(() -> {}).join();
    }
  }
}
