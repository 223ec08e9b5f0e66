package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A Cuda that is closed with the stack almost full is not closed at all, or wholly. */
@Timeout(120)
class FullStackTest {
  private static final int STACK_BYTES = 512 << 10;
  private static final int MOST_CALLS = 1 << 20;
  private static final int STEPS = 64;

  @Test
  void closing_isAllOrNothing_andCanBeDoneAgain() throws InterruptedException {
    Queue<String> wrong = new ConcurrentLinkedQueue<>();
    Runnable body = () -> closeAtManyDepths(wrong);
    Thread thread = new Thread(null, body, "small stack", STACK_BYTES);
    thread.setDaemon(true);
    thread.start();
    thread.join();
    assertThat(wrong).isEmpty();
  }

  private static void closeAtManyDepths(Queue<String> wrong) {
    int full = 256;
    while (full < MOST_CALLS && closesAtDepth(full, wrong)) {
      full *= 2;
    }
    if (full == MOST_CALLS) {
      wrong.add("the stack was never full");
    }
    for (int step = 0; step < STEPS; step++) {
      boolean _ = closesAtDepth(full / 2 + full / 2 * step / STEPS, wrong);
    }
  }

  /** False if the stack was full. */
  private static boolean closesAtDepth(int calls, Queue<String> wrong) {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (ScriptedDriver script = new ScriptedDriver()) {
      Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(script::over));
      CudaStream stream = cuda.device(0).createStream();
      Buffer buffer = cuda.allocate(1000, stream);
      buffer.fill((byte) 1, stream);
      boolean closed = true;
      try {
        closeBelow(calls, cuda);
      } catch (StackOverflowError e) {
        closed = false;
        if (cuda.isClosed()) {
          wrong.add("half closed at " + calls);
        }
      }
      cuda.close();
      if (script.count("close") != 1 || !simulator.report().isEmpty()) {
        wrong.add("left at " + calls + ": " + simulator.report());
      }
      return closed;
    }
  }

  private static int closeBelow(int calls, Cuda cuda) {
    if (calls == 0) {
      cuda.close();
      return 0;
    }
    return 1 + closeBelow(calls - 1, cuda);
  }
}
