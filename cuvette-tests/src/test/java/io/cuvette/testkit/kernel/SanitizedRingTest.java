package io.cuvette.testkit.kernel;

import static io.cuvette.sim.SimulatedParameter.POINTER;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** A kernel of a graph that takes the next place of a ring in each launch. */
class SanitizedRingTest {
  private static final int PLACES = 4;
  private static final int BYTES = 16;
  private static final SimulatedKernel RING =
      SimulatedKernel.of("nextOfRing", SanitizedRingTest::next, POINTER, POINTER);

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();

  private static void next(KernelThread thread) {
    int number = thread.getInt(thread.pointer(0));
    thread.setInt(thread.pointer(0), number + 1);
    for (int at = 0; at < BYTES; at += Integer.BYTES) {
      thread.setInt(thread.pointer(1) + number % PLACES * BYTES + at, number);
    }
  }

  /** The program copies a place while the next one is written, or the counter. */
  private void play(boolean isRight) {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(RING);
        Cuda cuda =
            Cuda.open(
                CudaOptions.simulated()
                    .withDecorator(driver -> SanitizerDriver.reporting(driver, reports::add)));
        CudaModule module = CudaModule.load(cuda, SimulatedKernels.ptx(List.of(RING)));
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        Buffer counter = cuda.allocate(Integer.BYTES, stream);
        Buffer ring = cuda.allocate(PLACES * BYTES, stream);
        PinnedBuffer out = cuda.allocatePinned(BYTES)) {
      counter.fillInts(0, stream);
      ring.fillInts(-1, stream);
      CudaKernel kernel = module.kernel(RING.name());
      try (CudaGraph graph =
              stream.capture(() -> stream.launch(kernel, LaunchConfig.of(1, 1), counter, ring));
          CudaGraphExec executable = graph.instantiate()) {
        for (int i = 0; i < 2 * PLACES; i++) {
          executable.launch(stream);
          other.waitFor(stream);
          executable.launch(stream);
          Buffer copied = isRight ? ring.slice(2 * i % PLACES * BYTES, BYTES) : counter;
          copied.copyTo(out, other);
          stream.waitFor(other);
          stream.synchronize();
          if (isRight) {
            assertThat(out.segment().get(ValueLayout.JAVA_INT, 0)).isEqualTo(2 * i);
          }
        }
      }
    }
  }

  @Test
  void copyOfThePlaceBefore_isNoRace() {
    play(true);
    assertThat(reports).isEmpty();
  }

  @Test
  void copyOfTheCounter_whichEachLaunchWrites_isARace() {
    play(false);
    assertThat(reports).extracting(SanitizerReport::misuse).containsOnly(Misuse.RACE);
  }
}
