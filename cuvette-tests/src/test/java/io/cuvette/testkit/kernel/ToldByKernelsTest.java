package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
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
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a kernel tells the host by a word that it writes, to the sanitizer. */
@Timeout(60)
class ToldByKernelsTest {
  private static final int BYTES = 4096;
  private static final VarHandle WORD = ValueLayout.JAVA_FLOAT.varHandle();

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver -> SanitizerDriver.reporting(driver, reports::add)));
  private final CudaDevice device = cuda.device(0);
  private final CudaModule module = CudaModule.load(cuda, TestKernels.code("launches.ptx"));
  private final CudaKernel scale = module.kernel("scale");
  private final CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
  private final PinnedBuffer input = cuda.allocatePinned(BYTES);
  private final PinnedBuffer word = cuda.allocatePinned(Float.BYTES);
  private final Buffer target = cuda.allocate(BYTES, stream);

  @AfterEach
  void close() {
    cuda.close();
  }

  private void change() {
    input.copyFrom(MemorySegment.ofArray(new byte[BYTES]));
  }

  private void launchAndSee() {
    word.segment().set(ValueLayout.JAVA_FLOAT, 0, 1);
    stream.launch(scale, LaunchConfig.of(1, 1), word, 2f, 1);
    while ((float) WORD.getVolatile(word.segment(), 0L) != 2) {
      Thread.onSpinWait();
    }
  }

  private void assertHostRaceOnly() {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatAKernelComesBehind_isDoneOnceTheHostSeesItsWord(boolean isSeen) {
    change();
    target.copyFrom(input, stream);
    launchAndSee();
    if (isSeen) {
      change();
    } else {
      input.segment().fill((byte) 3);
    }
    target.copyFrom(input, stream);
    launchAndSee();
    stream.synchronize();
    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatAKernelCameBehind_canBeFreedThen_andUsedByAGraph() {
    try (CudaGraph graph = other.capture(() -> target.fill((byte) 2, other));
        CudaGraphExec executable = graph.instantiate()) {
      change();
      target.copyFrom(input, stream);
      launchAndSee();
      input.close();
      target.fill((byte) 1, stream);
      launchAndSee();
      executable.launch(other);
    }
    assertThat(reports).isEmpty();
  }

  @Test
  void whatOtherStreamsDo_isNotDoneThen() {
    change();
    other.waitFor(stream);
    target.copyFrom(input, other);
    launchAndSee();
    change();
    assertHostRaceOnly();
  }

  @Test
  void whatIsQueuedBehindTheKernel_isNotDoneThen() {
    change();
    launchAndSee();
    target.copyFrom(input, stream);
    change();
    assertHostRaceOnly();
  }

  @Test
  void eachKernel_tellsOfItsOwnWork() {
    change();
    launchAndSee();
    target.copyFrom(input, stream);
    launchAndSee();
    change();
    assertThat(reports).isEmpty();
  }
}
