package io.cuvette.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class HandOverTest {
  @Test
  void eachBlock_isFreed() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool pool = new MemoryPool(cuda)) {
      AtomicInteger blocks = new AtomicInteger();
      MemoryResource counting =
          (bytes, stream) -> {
            blocks.incrementAndGet();
            return pool.allocate(bytes, stream);
          };
      HandOver work = new HandOver(counting, cuda.currentDevice().nullStream(), 1000);
      List<Rate.Task> tasks = work.tasks();
      CompletableFuture<Void> consumer = CompletableFuture.runAsync(() -> tasks.get(1).run(5000));
      tasks.get(0).run(5000);
      consumer.join();
      assertThat(blocks.get()).isEqualTo(5000);
      assertThat(pool.usedBytes()).isZero();
      assertThat(Rate.best(new Best(true), tasks)).isPositive();
    }
  }

  @Test
  void producerThatFails_endsTheConsumer() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool pool = new MemoryPool(cuda)) {
      AtomicInteger blocks = new AtomicInteger();
      MemoryResource failing =
          (bytes, stream) -> {
            if (blocks.incrementAndGet() > 5) {
              throw new IllegalStateException("no more");
            }
            return pool.allocate(bytes, stream);
          };
      HandOver work = new HandOver(failing, cuda.currentDevice().nullStream(), 1000);
      List<Rate.Task> tasks = work.tasks();
      CompletableFuture<Void> consumer = CompletableFuture.runAsync(() -> tasks.get(1).run(5000));
      assertThatThrownBy(() -> tasks.get(0).run(5000)).hasMessage("no more");
      consumer.join();
      assertThat(pool.usedBytes()).isZero();
    }
  }

  @Test
  void taskThatFails_isTheFailureOfAll() {
    List<Rate.Task> tasks =
        List.of(
            _ -> {},
            _ -> {
              throw new IllegalStateException("no more");
            });
    assertThatThrownBy(() -> Rate.best(new Best(true), tasks))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("no more");
  }
}
