package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.ForwardingDriver;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** An error, of a decorator for example, in the middle of giving memory back. */
class ErrorWhileFreeingTest {
  private static final Duration PATIENCE = Duration.ofSeconds(40);

  private static final class Failing extends ForwardingDriver {
    private boolean fails;

    Failing(CudaDriver driver) {
      super(driver);
    }

    @Override
    public void memFreeAsync(int device, long address, long stream) {
      if (fails) {
        throw new AssertionError("a decorator's");
      }
      super.memFreeAsync(device, address, stream);
    }
  }

  @Test
  void allocationThatIsShort_doesNotWaitForAFreeThatEndedWithAnError() throws Exception {
    @Nullable Failing[] driver = new Failing[1];
    try (Cuda cuda =
            Cuda.open(CudaOptions.simulated().withDecorator(d -> driver[0] = new Failing(d)));
        AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      pool.setLimit(MemoryLimit.ofBytes(1024));
      pool.allocate(512).close();
      driver[0].fails = true;
      assertThatThrownBy(pool::freeAllBlocks).isInstanceOf(AssertionError.class);
      driver[0].fails = false;
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
