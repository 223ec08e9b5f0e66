package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LibraryHandle;
import io.cuvette.Scope;
import io.cuvette.driver.OptionalLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** cuBLAS computes with the handles that are lent; skipped without a GPU or without cuBLAS. */
@SuppressWarnings("restricted")
class FfmMathGpuTest {
  private static final int COUNT = 1000;

  private Cuda cuda;
  private MethodHandle scale;

  @BeforeEach
  void open() {
    assumeTrue(new FfmDriverProvider().isAvailable(), "no GPU");
    Optional<Path> file = OptionalLibrary.CUBLAS.find();
    assumeTrue(file.isPresent(), OptionalLibrary.CUBLAS.missing());
    cuda = Cuda.open(CudaOptions.gpu());
    SymbolLookup library = SymbolLookup.libraryLookup(file.orElseThrow(), Arena.global());
    scale =
        Linker.nativeLinker()
            .downcallHandle(
                library.find("cublasSscal_v2").orElseThrow(),
                FunctionDescriptor.of(
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_INT,
                    ValueLayout.ADDRESS,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_INT));
  }

  @AfterEach
  void close() {
    if (cuda != null) {
      cuda.close();
    }
  }

  /** Doubles numbers on the stream that the handle is bound to. */
  private void compute(long handle, CudaStream stream) throws Throwable {
    float[] numbers = new float[COUNT];
    for (int i = 0; i < COUNT; i++) {
      numbers[i] = i;
    }
    try (Buffer buffer = cuda.allocate(COUNT * (long) Float.BYTES, stream)) {
      buffer.copyFrom(MemorySegment.ofArray(numbers));
      stream.device().synchronize();
      MemorySegment two = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, 2);
      int status = (int) scale.invokeWithArguments(handle, COUNT, two, buffer.address(), 1);
      assertThat(status).isZero();
      stream.synchronize();
      buffer.copyTo(MemorySegment.ofArray(numbers));
    }
    assertThat(numbers[COUNT - 1]).isEqualTo(2f * (COUNT - 1));
    assertThat(Arrays.equals(numbers, 0, 3, new float[] {0, 2, 4}, 0, 3)).isTrue();
  }

  @Test
  void handleOfTheThread_computesOnItsCurrentStream() throws Throwable {
    CudaDevice device = cuda.device(0);
    try (CudaStream stream = device.createStream();
        Scope _ = stream.use()) {
      long handle = device.cublasHandle();
      compute(handle, stream);
      assertThat(device.cublasHandle()).isEqualTo(handle);
      assertThat(device.cusolverDnHandle()).isNotZero();
      assertThat(device.cusolverSpHandle()).isNotZero();
    }
    compute(device.cublasHandle(), device.nullStream());
  }

  @Test
  void handleThatIsLent_computesOnAVirtualThread() throws Throwable {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    try (CudaStream stream = cuda.device(0).createStream()) {
      Thread.ofVirtual()
          .start(() -> {
            try (LibraryHandle handle = cuda.device(0).useCublas(stream)) {
              assertThat(handle.workspaceBytes()).isPositive();
              assertThat(cuda.defaultMemoryPool().usedBytes())
                  .isGreaterThanOrEqualTo(handle.workspaceBytes());
              compute(handle.handle(), stream);
            } catch (Throwable e) {
              failure.set(e);
            }
          })
          .join();
    }
    assertThat(failure.get()).isNull();
  }
}
