package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.testkit.ScriptedDriver;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** An error, of a decorator for example, in the middle of giving memory back. */
class ErrorWhileFreeingTest {
  private static final Duration PATIENCE = Duration.ofSeconds(40);

  @Test
  void allocationThatIsShort_doesNotWaitForAFreeThatEndedWithAnError() throws Exception {
    ScriptedDriver driver = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(driver::over));
        AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      pool.setLimit(MemoryLimit.ofBytes(1024));
      pool.allocate(512).close();
      driver.answer(
          "memFreeAsync",
          _ -> {
            throw new AssertionError("a decorator's");
          });
      assertThatThrownBy(pool::freeAllBlocks).isInstanceOf(AssertionError.class);
      driver.unscript("memFreeAsync");
      assertThat(failureOf(() -> pool.allocate(1024)))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      pool.allocate(512).close();
    }
  }

  private static @Nullable Throwable failureOf(Runnable call) throws InterruptedException {
    AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .uncaughtExceptionHandler((_, thrown) -> failure.set(thrown))
            .start(call);
    assertThat(thread.join(PATIENCE)).as("it ends").isTrue();
    return failure.get();
  }
}
