package io.cuvette.testkit.kernel;

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
import io.cuvette.MemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.testkit.support.TestKernels;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the sanitizer reports of kernels that leave their buffers inside of a pool's memory. */
class SanitizedPartsTest {
  private static final int COUNT = 256;
  private static final long BYTES = COUNT * (long) Float.BYTES;
  private static final LaunchConfig CONFIG = LaunchConfig.forElements(4 * COUNT, 64);

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  private Cuda cuda;
  private CudaModule module;
  private CudaKernel scale;
  private CudaStream stream;

  @BeforeEach
  void open() {
    cuda =
        Cuda.open(
            CudaOptions.simulated()
                .withDecorator(driver -> SanitizerDriver.reporting(driver, reports::add)));
    module = TestKernels.launches(cuda);
    scale = module.kernel("scale");
    stream = cuda.device(0).createStream();
    cuda.allocate(64 * BYTES, stream).close(); // what the pool cuts all others from
  }

  @AfterEach
  void close() {
    module.close();
    cuda.close();
    assertThat(reports).isEmpty();
  }

  private Buffer filled(long bytes) {
    Buffer buffer = cuda.allocate(bytes, stream);
    buffer.fill((byte) 0, stream);
    return buffer;
  }

  private void reported(Misuse misuse, String... texts) {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(misuse);
    assertThat(reports.removeFirst().toString()).contains("0x").contains(texts);
  }

  @Test
  void kernelThatTouchesMoreThanWasAskedFor_isOutOfBounds() {
    try (Buffer buffer = filled(BYTES - 2 * Float.BYTES)) {
      stream.launch(scale, CONFIG, buffer, 2f, COUNT - 2);
      stream.synchronize();
      assertThat(reports).isEmpty();
      stream.launch(scale, CONFIG, buffer, 2f, COUNT - 1);
      stream.synchronize();
      reported(Misuse.OUT_OF_BOUNDS, "launchKernel", "touched", "nobody has these bytes of");
    }
  }

  @Test
  void kernelThatLeavesItsBuffer_touchesWhatWasNeverLent() {
    try (Buffer buffer = filled(BYTES)) {
      stream.launch(scale, CONFIG, buffer, 2f, COUNT + 1);
      stream.synchronize();
      reported(Misuse.OUT_OF_BOUNDS, "nobody has these bytes of");
    }
  }

  @Test
  void kernelThatTouchesAClosedBuffer_isAUseAfterFree() {
    Buffer buffer = filled(BYTES);
    try (Buffer beside = filled(BYTES)) {
      assertThat(beside.address()).isEqualTo(buffer.address() + BYTES);
      buffer.close();
      stream.launch(scale, CONFIG, beside.address() - BYTES, 2f, 2 * COUNT);
      stream.synchronize();
    }
    // the argument is one, and what the kernel touches
    assertThat(reports).hasSize(2).allMatch(found -> found.misuse() == Misuse.USE_AFTER_FREE);
    reports.clear();
    Buffer first = filled(BYTES);
    Buffer second = filled(BYTES);
    second.close();
    stream.launch(scale, CONFIG, first, 2f, COUNT + 1);
    first.close();
    stream.synchronize();
    reported(Misuse.USE_AFTER_FREE, "touched", "freed block");
  }

  @Test
  void kernel_mayTouchWhatIsClosedAfterItsLaunch_andPartsOfPoolsOverPools() {
    Buffer buffer = filled(BYTES);
    stream.launch(scale, CONFIG, buffer, 2f, COUNT);
    buffer.close();
    MemoryPool above =
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(cuda.defaultMemoryPool()));
    above.allocate(8 * BYTES, stream).close();
    try (Buffer inner = above.allocate(BYTES, stream)) {
      inner.fill((byte) 0, stream);
      stream.launch(scale, CONFIG, inner, 2f, COUNT);
      stream.synchronize();
      assertThat(reports).isEmpty();
      stream.launch(scale, CONFIG, inner, 2f, COUNT + 1);
      stream.synchronize();
    }
    above.close();
    reported(Misuse.OUT_OF_BOUNDS, "nobody has these bytes of");
  }

  @Test
  void kernel_mayBeGivenTheEndOfABuffer_whateverIsBehind() {
    CudaKernel add = module.kernel("addVectors");
    for (long bytes : new long[] {BYTES, BYTES - Long.BYTES}) {
      try (Buffer buffer = filled(bytes)) {
        filled(BYTES).close();
        stream.launch(add, CONFIG, buffer, buffer.address() + bytes, buffer, 0);
        stream.synchronize();
      }
    }
    assertThat(reports).isEmpty();
  }

  private void launchClosed(boolean asBuffer, boolean early) {
    Buffer buffer = filled(BYTES);
    try (CudaGraph graph =
        stream.capture(
            () -> stream.launch(scale, CONFIG, asBuffer ? buffer : buffer.address(), 2f, COUNT))) {
      if (early) {
        buffer.close();
      }
      try (CudaGraphExec executable = graph.instantiate()) {
        buffer.close();
        executable.launch(stream);
        stream.synchronize();
      }
    }
  }

  @Test
  void graphWithTheAddressOfAClosedBuffer_isAUseAfterFree_andWithTheBufferNot() {
    launchClosed(true, false);
    launchClosed(true, true);
    assertThat(reports).isEmpty();
    launchClosed(false, false);
    reported(Misuse.USE_AFTER_FREE, "graphLaunch", "in a graph: freed block");
    launchClosed(false, true);
    reported(Misuse.USE_AFTER_FREE, "graphLaunch", "in a graph: freed block");
  }
}
