package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.Dim3;
import io.cuvette.KernelArguments;
import io.cuvette.KernelAttribute;
import io.cuvette.LaunchConfig;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Kernels give what Java gives, however they are launched. */
class LaunchTest {
  private static final int COUNT = 1_000;
  private static final int THREADS = 128;

  /** A launch of add reads as a call. */
  interface Add {
    void add(CudaStream stream, LaunchConfig config, Buffer a, Buffer b, Buffer sum, int count);
  }

  private static float[] numbers(int factor) {
    float[] numbers = new float[COUNT];
    for (int i = 0; i < COUNT; i++) {
      numbers[i] = factor * i;
    }
    return numbers;
  }

  private static Buffer filled(Cuda cuda, CudaStream stream, float[] content) {
    Buffer buffer = cuda.allocate((long) content.length * Float.BYTES, stream);
    buffer.copyFrom(MemorySegment.ofArray(content));
    return buffer;
  }

  private static float[] floats(Buffer buffer, CudaStream stream) {
    float[] content = new float[(int) (buffer.byteSize() / Float.BYTES)];
    stream.synchronize();
    buffer.copyTo(MemorySegment.ofArray(content));
    return content;
  }

  private static int[] ints(Buffer buffer, CudaStream stream) {
    int[] content = new int[(int) (buffer.byteSize() / Integer.BYTES)];
    stream.synchronize();
    buffer.copyTo(MemorySegment.ofArray(content));
    return content;
  }

  @CudaTest
  void sumOfVectors_launchedPackedAndBound(Cuda cuda, @NonBlocking CudaStream stream) {
    LaunchConfig config = LaunchConfig.forElements(COUNT, THREADS);
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer a = filled(cuda, stream, numbers(1));
        Buffer b = filled(cuda, stream, numbers(2));
        Buffer sum = cuda.allocate((long) COUNT * Float.BYTES, stream)) {
      CudaKernel add = module.kernel("addVectors");
      stream.launch(add, config, a, b, sum, COUNT);
      assertThat(floats(sum, stream)).isEqualTo(numbers(3));

      KernelArguments packed = add.pack(sum, b, sum, COUNT);
      packed.launch(stream, config);
      packed.launch(stream, config);
      assertThat(floats(sum, stream)).isEqualTo(numbers(7));

      add.bind(Add.class).add(stream, config, a, a, sum, COUNT);
      assertThat(floats(sum, stream)).isEqualTo(numbers(2));
    }
  }

  @CudaTest
  void valuesOfAllSizes_andAStructure_arrive(Cuda cuda, @NonBlocking CudaStream stream) {
    MemorySegment pair = MemorySegment.ofArray(new long[2]);
    pair.set(ValueLayout.JAVA_FLOAT, 0, 0.5f);
    pair.set(ValueLayout.JAVA_DOUBLE, 8, 1e6);
    try (CudaModule module = TestKernels.launches(cuda);
        PinnedBuffer out = cuda.allocatePinned(Long.BYTES)) {
      stream.launch(
          module.kernel("addValues"),
          LaunchConfig.of(1, 1),
          (byte) -3,
          (short) 2_000,
          0.5,
          pair,
          out);
      stream.synchronize();
      assertThat(out.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(-3 + 2_000 + 1_000_001);
    }
  }

  @CudaTest
  void launchesOfOneStream_runInOrder(Cuda cuda, @NonBlocking CudaStream stream) {
    LaunchConfig config = LaunchConfig.forElements(COUNT, THREADS);
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = filled(cuda, stream, numbers(1))) {
      CudaKernel scale = module.kernel("scale");
      for (int i = 0; i < 10; i++) {
        stream.launch(scale, config, data, 2f, COUNT);
      }
      assertThat(floats(data, stream)).isEqualTo(numbers(1 << 10));
    }
  }

  @CudaTest
  void reduction_withSharedMemory(Cuda cuda, @NonBlocking CudaStream stream) {
    int[] numbers = new Random(1).ints(COUNT, -1_000, 1_000).toArray();
    int blocks = (COUNT + THREADS - 1) / THREADS;
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer in = cuda.allocate((long) COUNT * Integer.BYTES, stream);
        Buffer out = cuda.allocate((long) blocks * Integer.BYTES, stream)) {
      in.copyFrom(MemorySegment.ofArray(numbers));
      stream.launch(
          module.kernel("sumBlocks"),
          LaunchConfig.forElements(COUNT, THREADS).withDynamicSharedBytes(THREADS * Integer.BYTES),
          in,
          out,
          COUNT);
      assertThat(Arrays.stream(ints(out, stream)).sum()).isEqualTo(Arrays.stream(numbers).sum());
    }
  }

  @CudaTest
  void histogram_withAtomics(Cuda cuda, @NonBlocking CudaStream stream) {
    byte[] bytes = new byte[COUNT];
    new Random(2).nextBytes(bytes);
    int[] expected = new int[256];
    for (byte value : bytes) {
      expected[Byte.toUnsignedInt(value)]++;
    }
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer in = cuda.allocate(COUNT, stream);
        Buffer bins = cuda.allocate(256L * Integer.BYTES, stream)) {
      in.copyFrom(MemorySegment.ofArray(bytes));
      bins.fill(0, stream);
      // one thread for each block: the twin adds to shared memory without atomics
      int threads = cuda.isSimulated() ? 1 : THREADS;
      stream.launch(module.kernel("countBytes"), LaunchConfig.of(4, threads), in, bins, COUNT);
      assertThat(ints(bins, stream)).isEqualTo(expected);
    }
  }

  @CudaTest
  void cooperativeReduction_waitsForAllBlocks(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaDevice device = stream.device();
    assumeTrue(device.attribute(DeviceAttribute.COOPERATIVE_LAUNCH) == 1, "no such launches");
    int blocks = 4;
    int[] numbers = IntStream.rangeClosed(1, COUNT).toArray();
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer in = cuda.allocate((long) COUNT * Integer.BYTES, stream);
        Buffer parts = cuda.allocate((long) blocks * Integer.BYTES, stream);
        Buffer sum = cuda.allocate(Integer.BYTES, stream)) {
      in.copyFrom(MemorySegment.ofArray(numbers));
      LaunchConfig config = LaunchConfig.of(blocks, 32).withCooperative(true);
      CudaKernel kernel = module.kernel("sumAll");
      assertThat(kernel.maxResidentBlocks(device, config)).isGreaterThanOrEqualTo(blocks);
      stream.launch(kernel, config, in, parts, sum, COUNT);
      assertThat(ints(sum, stream)).containsExactly(COUNT * (COUNT + 1) / 2);
    }
  }

  @CudaTest
  void clusters_shareTheirMemory(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaDevice device = stream.device();
    assumeTrue(device.attributes().getOrDefault(DeviceAttribute.CLUSTER_LAUNCH, 0) == 1, "none");
    try (CudaModule module = TestKernels.clusters(cuda);
        Buffer out = cuda.allocate(3L * Integer.BYTES, stream)) {
      CudaKernel kernel = module.kernel("sumClusters");
      LaunchConfig config = LaunchConfig.of(3, 32).withCluster(Dim3.of(4));
      assertThat(config).isEqualTo(LaunchConfig.of(12, 32).inClustersOf(Dim3.of(4)));
      assertThat(kernel.maxActiveClusters(device, config)).isPositive();
      assertThat(kernel.maxPotentialClusterSize(device, config)).isGreaterThanOrEqualTo(4);
      assertThat(kernel.maxResidentBlocks(device, config))
          .as("blocks, not clusters")
          .isEqualTo(4L * kernel.maxActiveClusters(device, config));
      stream.launch(kernel, config, out);
      assertThat(ints(out, stream)).containsExactly(1 + 2 + 3 + 4, 5 + 6 + 7 + 8, 9 + 10 + 11 + 12);
    }
  }

  @CudaTest
  void questionsAboutOccupancy_nameWhatIsOutOfRange(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("countBytes");
      Map<ThrowingCallable, String> all = new LinkedHashMap<>();
      all.put(() -> kernel.maxActiveBlocks(device, 0, 0), "blockThreads: 0 (expected: ");
      all.put(() -> kernel.maxActiveBlocks(device, 1, -1), "dynamicSharedBytes: -1 (expected: ");
      all.put(() -> kernel.maxPotentialBlockSize(device, -1, 0), "dynamicSharedBytes: -1 (exp");
      all.put(() -> kernel.maxPotentialBlockSize(device, 0, -1), "blockLimit: -1 (expected: ");
      all.put(() -> kernel.availableDynamicSharedBytes(device, 0, 1), "blocks: 0 (expected: ");
      all.put(() -> kernel.availableDynamicSharedBytes(device, 1, 0), "blockThreads: 0 (expect");
      all.put(() -> kernel.allowDynamicSharedBytes(device, -1), "bytes: -1 (expected: ");
      all.forEach((question, message) ->
          assertThatThrownBy(question)
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageStartingWith(message));
    }
  }

  @CudaTest
  void attributesAndOccupancy_areTheDrivers(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaDevice device = stream.device();
    try (CudaModule module = TestKernels.launches(cuda)) {
      assertThat(module.kernelNames()).contains("countBytes", "scale", "sumAll", "sumBlocks");
      CudaKernel kernel = module.kernel("countBytes");
      assertThat(kernel.parameters().orElseThrow()).hasSize(3);
      assertThat(kernel.attribute(KernelAttribute.SHARED_SIZE_BYTES, device)).isEqualTo(1024);
      assertThat(kernel.attribute(KernelAttribute.MAX_THREADS_PER_BLOCK, device)).isEqualTo(1024);
      assertThat(kernel.maxActiveBlocks(device, THREADS, 0)).isPositive();
      assertThat(kernel.maxPotentialBlockSize(device, 0, 512).blockThreads()).isBetween(32, 512);
      assertThat(kernel.availableDynamicSharedBytes(device, 1, THREADS)).isPositive();
      int most = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - 1024;
      kernel.allowDynamicSharedBytes(device, most);
      assertThat(kernel.attribute(KernelAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, device))
          .isEqualTo(most);
    }
  }
}
