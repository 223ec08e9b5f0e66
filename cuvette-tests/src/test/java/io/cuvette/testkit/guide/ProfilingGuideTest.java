package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LibraryHandle;
import io.cuvette.Nvtx;
import io.cuvette.NvtxCategory;
import io.cuvette.NvtxDomain;
import io.cuvette.NvtxEvent;
import io.cuvette.NvtxRange;
import io.cuvette.Registration;
import io.cuvette.driver.MathLibrary;
import io.cuvette.instrument.NvtxMemoryDriver;
import io.cuvette.testkit.CudaTest;
import org.junit.jupiter.api.Test;

/** The programs of docs/guide/profiling.md. */
class ProfilingGuideTest {
  @CudaTest
  void marksAndRanges(Cuda cuda, CudaStream stream) {
    Buffer buffer = cuda.allocate(4096, stream);
    Nvtx.name(stream, "copies");
    Nvtx.rangePush("fill", 0); // one of ten colors; a range of this thread
    try {
      buffer.fill((byte) 1, stream);
    } finally {
      Nvtx.rangePop();
    }
    try (NvtxRange _ = Nvtx.rangeStart("wait")) { // any thread may end it
      stream.synchronize();
    }
    Nvtx.markC("done", 0xFF00FF00); // ARGB
    buffer.close();
  }

  @Test
  void domains() {
    double residual = 0.5;
    NvtxDomain domain = Nvtx.domain("solver");
    NvtxCategory category = domain.category(1, "iterations");
    NvtxEvent step = NvtxEvent.of(domain.register("step")).category(category).color(3);
    domain.mark(step.payload(residual));
    assertThat(domain).isSameAs(Nvtx.domain("solver"));
  }

  @CudaTest
  void profiling(Cuda cuda, CudaStream stream) {
    CudaDevice device = stream.device();
    Buffer buffer = cuda.allocate(4096, stream);
    try (Registration _ = device.profiler().profile()) { // the first starts, the last stops
      buffer.fill((byte) 2, stream);
      stream.synchronize();
    }
    buffer.close();
  }

  @Test
  void blocksOfPools() {
    CudaOptions options = CudaOptions.DEFAULTS.withDecorator(NvtxMemoryDriver::over);
    try (Cuda cuda = Cuda.open(options.withDevice("sim"))) {
      cuda.allocate(100).close();
      assertThat(cuda.driver().isSimulated()).isTrue();
    }
  }

  @CudaTest
  void handles(Cuda cuda, CudaStream stream) {
    CudaDevice device = stream.device();
    assumeTrue(
        cuda.isSimulated() || MathLibrary.CUBLAS.file().find().isPresent(), "no cuBLAS here");
    try (LibraryHandle cublas = device.useCublas(stream)) {
      long handle = cublas.handle(); // cublasHandle_t, for a function of cuBLAS
      assertThat(handle).isNotZero();
      assertThat(cuda.defaultMemoryPool().usedBytes()).isGreaterThan(cublas.workspaceBytes() - 1);
    }
  }
}
