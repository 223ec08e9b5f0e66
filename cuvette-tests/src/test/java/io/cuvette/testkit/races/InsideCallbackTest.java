package io.cuvette.testkit.races;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Every public operation, and every end of what it uses, inside a callback: it completes or is
 * refused, the stream goes on, and nothing is left.
 */
@Timeout(240)
class InsideCallbackTest {
  private static final long PATIENCE_SECONDS =
      9; // who waits for the callback itself is let go after 10

  /** Operations of the matrix that wait for the future of another callback, or of a copy. */
  private static final Pattern WAITS = Pattern.compile("addCallback|onComplete|Async\\(");

  @Test
  void onABlockingStream() throws Exception {
    run(stage -> stage.device.createStream());
  }

  @Test
  void onTheNullStream() throws Exception {
    run(stage -> stage.device.nullStream());
  }

  @Test
  void onTheStreamThatIsUsed() throws Exception {
    run(stage -> (CudaStream) stage.end(Closer.STREAM));
  }

  private static void run(Function<Stage, @Nullable CudaStream> stream) throws Exception {
    List<String> wrong = new ArrayList<>();
    for (Operation operation : Operations.all()) {
      if (WAITS.matcher(operation.method()).find()) {
        continue;
      }
      try (CudaDriver base = SimulatedDriver.open(SimulatedOptions.parse("devices=2"))) {
        CountedDriver driver = new CountedDriver(base);
        String failure = run(operation, driver, stream);
        if (failure != null) {
          wrong.add(operation + ": " + failure);
        } else if (!driver.live().isEmpty()) {
          wrong.add(operation + ": left " + driver.live());
        }
      }
    }
    assertThat(wrong).isEmpty();
  }

  private static @Nullable String run(
      Operation operation, CountedDriver driver, Function<Stage, @Nullable CudaStream> stream)
      throws Exception {
    try (Cuda cuda = Cell.open(driver)) {
      Stage stage = new Stage(cuda, driver.theirs(), false);
      Runnable body = operation.prepare().apply(stage);
      CudaStream on = stream.apply(stage);
      if (on == null) {
        stage.close();
        return null;
      }
      String failure = inCallback(on, body);
      for (Closer closer : stage.closers()) {
        AutoCloseable end = stage.end(closer);
        String ending = inCallback(on, () -> close(end));
        failure = failure == null && ending != null ? closer + " " + ending : failure;
      }
      stage.close();
      return failure;
    }
  }

  private static void close(AutoCloseable end) {
    try {
      end.close();
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  /** What it did other than to complete, or to be refused in time. */
  private static @Nullable String inCallback(CudaStream stream, Runnable body)
      throws InterruptedException {
    try {
      stream.addCallback(body).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
      return null;
    } catch (ExecutionException e) {
      return e.getCause() instanceof IllegalStateException ? null : e.getCause().toString();
    } catch (IllegalStateException e) {
      return null; // the stream is closed
    } catch (TimeoutException e) {
      return "does not end";
    }
  }
}
