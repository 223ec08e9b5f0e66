package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a copy that fails does about the memory that the device may be copying. */
@Timeout(60)
class AsyncCopyFailuresTest {
  private static final int BYTES = 1 << 20;

  private final ScriptedDriver driver = new ScriptedDriver();

  /** Work is done when somebody waits for it. */
  private final Cuda cuda =
      Cuda.open(CudaOptions.simulated().withDevice("sim:pace=lazy").withDecorator(driver::over));

  private final CudaStream stream = cuda.device(0).createStream();
  private final Buffer buffer = cuda.allocate(BYTES, stream);

  @AfterEach
  void close() {
    cuda.close();
  }

  private Throwable failing(Throwable failure, MemorySegment host, boolean in) {
    String call = in ? "memcpyHtoDAsync" : "memcpyDtoHAsync";
    driver.answer(
        call,
        made -> {
          Object _ = made.proceed();
          throw failure;
        });
    try {
      return catchThrowable(() -> {
        var _ = in ? buffer.copyFromAsync(host, stream) : buffer.copyToAsync(host, stream);
      });
    } finally {
      driver.unscript(call);
    }
  }

  /** A refusal of this library came before the driver had anything. */
  @Test
  void memoryThatOthersPageLocked_isLetGo_onceTheDeviceHasCopiedIt_ifItMayHaveBegun() {
    Map<Throwable, Boolean> failures =
        Map.of(
            new CudaException(CudaStatus.INVALID_VALUE, "copy", "on purpose"), true,
            new OutOfMemoryError("on purpose"), true,
            new IllegalStateException("on purpose"), false);
    failures.forEach((failure, waits) -> {
      for (boolean in : new boolean[] {true, false}) {
        try (Arena arena = Arena.ofShared()) {
          MemorySegment memory = arena.allocate(BYTES, 4096);
          cuda.driver().memory().memHostRegister(0, memory, 3);
          Throwable thrown = failing(failure, memory, in);
          assertThat(thrown).isSameAs(failure).hasNoSuppressedExceptions();
          assertThat(stream.isDone()).as("%s", failure).isEqualTo(waits);
          stream.synchronize();
          cuda.driver().memory().memHostUnregister(0, memory.address());
        }
      }
    });
  }

  @Test
  void copyOfMemoryThatIsNotPageLocked_failsWithTheDriversErrorAlone() {
    try (Arena arena = Arena.ofConfined()) {
      for (MemorySegment host : List.of(arena.allocate(16), arena.allocate(16).asSlice(0, 1))) {
        for (boolean in : new boolean[] {true, false}) {
          var failure = new CudaException(CudaStatus.INVALID_VALUE, "copy", "on purpose");
          assertThat(failing(failure, host, in)).isSameAs(failure).hasNoSuppressedExceptions();
        }
      }
    }
  }
}
