package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/**
 * A stream whose end another thread has just begun: who waits for its work does that all the same.
 */
class EndingStreamTest {
  @Test
  void adoptedMemory_isGivenBackAfterItsWork() throws InterruptedException {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.parse("seed=1"));
    AtomicReference<List<String>> before = new AtomicReference<>();
    try (ScriptedDriver script = new ScriptedDriver();
        Cuda cuda =
            Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(script::over))) {
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      assertThat(stream.handle()).as("known to others, who may capture it").isNotZero();
      Buffer memory = MemoryResource.direct().allocate(64, stream);
      Buffer adopted = cuda.device(0).adopt(memory.address(), 64, () -> before.set(script.notes()));
      script.note("memsetD8Async", "eventSynchronize", "streamSynchronize", "memFree");
      Gate gate = Gate.on(stream); // nothing is done before somebody waits for it
      for (String wait : List.of("eventSynchronize", "streamSynchronize", "memFree")) {
        script.answer(
            wait,
            call -> {
              gate.open();
              return call.proceed();
            });
      }
      adopted.fill((byte) 1, stream);
      Hold end = script.hold("streamGetCaptureInfo");
      Thread closing = Thread.ofPlatform().start(stream::close);
      end.awaitBegun();
      adopted.close();
      end.release();
      closing.join();
      memory.close();
    }
    assertThat(before.get()).startsWith("memsetD8Async").hasSizeGreaterThan(1);
    assertThat(simulator.report()).isEmpty();
  }
}
