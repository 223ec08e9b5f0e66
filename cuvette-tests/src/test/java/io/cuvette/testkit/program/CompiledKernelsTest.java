package io.cuvette.testkit.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.CompilerOptions;
import io.cuvette.ComputeCapability;
import io.cuvette.Cuda;
import io.cuvette.CudaLinker;
import io.cuvette.CudaModule;
import io.cuvette.CudaProgram;
import io.cuvette.CudaStream;
import io.cuvette.Dim3;
import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import io.cuvette.LaunchConfig;
import io.cuvette.LinkerOptions;
import io.cuvette.driver.CompilerException;
import io.cuvette.driver.LinkerCalls;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/** The kernels of samples.cu, compiled here by NVRTC, give what Java gives; on a GPU alone. */
class CompiledKernelsTest {
  private static final int N = 100_003;
  private static final int[] VALUES = new Random(7).ints(N, -1_000, 1_000).toArray();
  private static final int SUM = Arrays.stream(VALUES).sum();

  /** The samples in each form that a GPU of this machine loads. */
  private static List<KernelCode> forms(Cuda cuda) {
    assumeFalse(cuda.isSimulated(), "the simulated device runs no compiled kernels");
    Toolkit.needsCompiler();
    ComputeCapability capability = cuda.currentDevice().computeCapability();
    CompilerOptions options =
        CompilerOptions.DEFAULTS.withArchitecture(capability).withNameExpression("scale<double>");
    KernelCode ptx = Toolkit.samples(options).compile(Kind.PTX);
    KernelCode cubin = Toolkit.samples(options).compile(Kind.CUBIN);
    Toolkit.needsLinker();
    KernelCode ltoIr = Toolkit.samples(options).compile(Kind.LTOIR);
    KernelCode linked =
        new CudaLinker(LinkerOptions.of(capability)).link(Kind.CUBIN, List.of(ltoIr));
    return List.of(ptx, cubin, linked);
  }

  /** Launches a kernel as users do, and waits for it. */
  private static void run(
      Cuda cuda, KernelCode code, String name, LaunchConfig config, Object... arguments) {
    try (CudaModule module = CudaModule.load(cuda, code);
        CudaStream stream = cuda.currentDevice().createStream()) {
      stream.launch(module.kernel(name), config, arguments);
      stream.synchronize();
    }
  }

  private static Buffer of(Cuda cuda, int[] values) {
    Buffer buffer = cuda.allocate(4L * values.length);
    buffer.copyFrom(MemorySegment.ofArray(values));
    return buffer;
  }

  private static int[] ints(Buffer buffer) {
    int[] values = new int[(int) (buffer.byteSize() / 4)];
    buffer.copyTo(MemorySegment.ofArray(values));
    return values;
  }

  @CudaTest
  void vectorAdd_isTheSum(Cuda cuda) {
    float[] a = new float[N];
    float[] b = new float[N];
    float[] expected = new float[N];
    for (int i = 0; i < N; i++) {
      a[i] = VALUES[i] / 7f;
      b[i] = i;
      expected[i] = a[i] + b[i];
    }
    for (KernelCode code : forms(cuda)) {
      try (Buffer first = cuda.allocate(4L * N);
          Buffer second = cuda.allocate(4L * N);
          Buffer third = cuda.allocate(4L * N)) {
        first.copyFrom(MemorySegment.ofArray(a));
        second.copyFrom(MemorySegment.ofArray(b));
        run(cuda, code, "vector_add", LaunchConfig.forElements(N, 256), first, second, third, N);
        float[] found = new float[N];
        third.copyTo(MemorySegment.ofArray(found));
        assertThat(found).as(code.toString()).isEqualTo(expected);
      }
    }
  }

  @CudaTest
  void reductionWithSharedMemory_isTheSum(Cuda cuda) {
    int blocks = (N + 511) / 512;
    for (KernelCode code : forms(cuda)) {
      try (Buffer in = of(cuda, VALUES);
          Buffer out = of(cuda, new int[blocks])) {
        LaunchConfig config = LaunchConfig.of(blocks, 512).withDynamicSharedBytes(4 * 512);
        run(cuda, code, "block_sum", config, in, out, N);
        assertThat(Arrays.stream(ints(out)).sum()).as(code.toString()).isEqualTo(SUM);
      }
    }
  }

  @CudaTest
  void reductionOfAWholeGrid_isTheSum(Cuda cuda) {
    for (KernelCode code : forms(cuda)) {
      try (Buffer in = of(cuda, VALUES);
          Buffer parts = of(cuda, new int[32]);
          Buffer out = of(cuda, new int[1])) {
        run(
            cuda,
            code,
            "grid_sum",
            LaunchConfig.of(32, 256).withCooperative(true),
            in,
            parts,
            out,
            N);
        assertThat(ints(out)).as(code.toString()).containsExactly(SUM);
      }
    }
  }

  @CudaTest
  void clusters_readEachOthersSharedMemory(Cuda cuda) {
    List<KernelCode> forms = forms(cuda);
    assumeTrue(cuda.currentDevice().computeCapability().major() >= 9, "clusters need sm_90");
    int[] values = Arrays.copyOf(VALUES, 64 * 16);
    int[] expected =
        IntStream.range(0, values.length)
            .map(i -> {
              int block = i / 64;
              return values[(block / 4 * 4 + (block + 1) % 4) * 64 + i % 64];
            })
            .toArray();
    for (KernelCode code : forms) {
      try (Buffer in = of(cuda, values);
          Buffer out = of(cuda, new int[values.length])) {
        run(cuda, code, "cluster_turn", LaunchConfig.of(16, 64).inClustersOf(Dim3.of(4)), in, out);
        assertThat(ints(out)).as(code.toString()).isEqualTo(expected);
      }
    }
  }

  @CudaTest
  void histogramByAtomics_countsEachByte(Cuda cuda) {
    byte[] bytes = new byte[N];
    new Random(11).nextBytes(bytes);
    int[] expected = new int[256];
    for (byte each : bytes) {
      expected[each & 0xFF]++;
    }
    for (KernelCode code : forms(cuda)) {
      try (Buffer in = cuda.allocate(N);
          Buffer bins = of(cuda, new int[256])) {
        in.copyFrom(MemorySegment.ofArray(bytes));
        run(cuda, code, "histogram", LaunchConfig.of(64, 256), in, bins, N);
        assertThat(ints(bins)).as(code.toString()).isEqualTo(expected);
      }
    }
  }

  @CudaTest
  void templateByItsLoweredName_isLaunched(Cuda cuda) {
    double[] values = IntStream.range(0, N).mapToDouble(i -> i / 3.0).toArray();
    double[] expected = Arrays.stream(values).map(value -> value * 2.5).toArray();
    KernelCode ptx = forms(cuda).getFirst();
    try (Buffer buffer = cuda.allocate(8L * N)) {
      buffer.copyFrom(MemorySegment.ofArray(values));
      LaunchConfig config = LaunchConfig.forElements(N, 256);
      run(cuda, ptx, ptx.loweredName("scale<double>"), config, buffer, 2.5, N);
      double[] found = new double[N];
      buffer.copyTo(MemorySegment.ofArray(found));
      assertThat(found).isEqualTo(expected);
    }
  }

  /** What CudaLinker does where nvJitLink is missing. */
  @CudaTest
  void driversLinker_linksPtxAndCubins(Cuda cuda) {
    assumeFalse(cuda.isSimulated(), "the simulated device runs no compiled kernels");
    Toolkit.needsCompiler();
    ComputeCapability capability = cuda.currentDevice().computeCapability();
    CompilerOptions apart =
        CompilerOptions.DEFAULTS.withArchitecture(capability).withRelocatableCode(true);
    CudaProgram caller =
        CudaProgram.of(
                "extern __device__ int twice(int);"
                    + " extern \"C\" __global__ void call(int* x) { *x = twice(*x); }")
            .withOptions(apart);
    CudaProgram called =
        CudaProgram.of("__device__ int twice(int x) { return x * 2; }").withOptions(apart);
    LinkerCalls driver = LinkerCalls.all().getLast();
    assertThat(driver.library()).contains("cuda");
    for (Kind kind : List.of(Kind.PTX, Kind.CUBIN)) {
      long linker = driver.create(List.of("-arch=sm_" + capability.digits(), "-O3", "-verbose"));
      byte[] cubin;
      try {
        int type = kind == Kind.PTX ? 2 : 1;
        driver.addData(linker, type, caller.compile(kind).bytes(), "caller");
        driver.addData(linker, type, called.compile(kind).bytes(), "called");
        driver.complete(linker);
        cubin = driver.getLinkedCubin(linker);
      } finally {
        driver.destroy(linker);
      }
      try (Buffer number = of(cuda, new int[] {21})) {
        run(cuda, KernelCode.of(cubin), "call", LaunchConfig.of(1, 1), number);
        assertThat(ints(number)).as(kind.toString()).containsExactly(42);
      }
      long wrong = driver.create(List.of("-arch=sm_" + capability.digits()));
      try {
        driver.addData(wrong, 2, caller.compile(Kind.PTX).bytes(), "caller");
        assertThatThrownBy(() -> driver.complete(wrong)).isInstanceOf(CompilerException.class);
        assertThat(driver.getErrorLog(wrong)).contains("twice");
      } finally {
        driver.destroy(wrong);
      }
    }
  }
}
