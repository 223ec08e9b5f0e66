package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.Dim3;
import io.cuvette.GraphDefinition;
import io.cuvette.KernelArguments;
import io.cuvette.KernelAttribute;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryResource;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.TimerTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Bad input gets one clear error, before the driver is called. */
class LaunchRefusalsTest {
  private static final LaunchConfig SMALL = LaunchConfig.of(1, 32);

  private static void refused(ThrowingCallable call, String... parts) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(parts);
  }

  @Test
  void extents_areInRange() {
    refused(() -> LaunchConfig.of(0, 32), "blocks: 0 (expected: 1 to 2147483647)");
    refused(() -> LaunchConfig.of(1L << 31, 32), "blocks: 2147483648 (expected: 1 to 2147483647)");
    refused(() -> LaunchConfig.of(1, 0), "threads: 0");
    refused(() -> LaunchConfig.forElements(0, 32), "elements: 0");
    refused(() -> LaunchConfig.forElements(1L << 40, 32), "blocks: 34359738368");
    refused(() -> Dim3.of(1, -1), "y: -1");
    refused(() -> new Dim3(1, 1, 0), "z: 0");
    refused(() -> SMALL.withDynamicSharedBytes(-1), "dynamicSharedBytes: -1");
  }

  @Test
  void clusters_divideTheBlocks_andDoNotOverflow() {
    refused(
        () -> LaunchConfig.of(10, 32).inClustersOf(Dim3.of(4)),
        "cluster in x: 4 blocks (expected: a divisor of the 10 blocks of the grid)");
    refused(
        () -> LaunchConfig.of(1L << 30, 32).withCluster(Dim3.of(8)),
        "grid in x: 1073741824 clusters of 8 blocks are 8589934592 (expected: <= 2147483647)");
    assertThat(LaunchConfig.of(3, 32).withCluster(Dim3.of(2, 2)).blocks())
        .isEqualTo(new Dim3(6, 2, 1));
    assertThat(new Dim3(Integer.MAX_VALUE, Integer.MAX_VALUE, 3).count()).isEqualTo(Long.MAX_VALUE);
  }

  @CudaTest
  void limitsOfTheDevice_areHeld(Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      LaunchConfig[] bad = {
        SMALL.withGrid(Dim3.of(1, 65_536)),
        SMALL.withGrid(Dim3.of(1, 1, 65_536)),
        SMALL.withBlock(Dim3.of(2_048)),
        SMALL.withBlock(Dim3.of(64, 64)),
        SMALL.withBlock(Dim3.of(1, 1, 128)),
        SMALL.withDynamicSharedBytes(50_000),
        SMALL.withDynamicSharedBytes(1 << 20),
        LaunchConfig.of(2_000_000_000L, 32).withCooperative(true),
        SMALL.withCluster(Dim3.of(64))
      };
      String[] expected = {
        "blocks in y: 65536 (expected: <= 65535, the most of device 0)",
        "blocks in z: 65536",
        "threads of a block in x: 2048 (expected: <= 1024",
        "threads of a block: 4096 (expected: <= 1024",
        "threads of a block in z: 128 (expected: <= 64",
        "dynamicSharedBytes: 50000 (expected: <= 49152, or CudaKernel.allowDynamicSharedBytes",
        "dynamicSharedBytes: 1048576 (expected: <= ",
        "cooperative launch of 2000000000 blocks (expected: <= ",
        "cluster: (64, 1, 1)"
      };
      for (int i = 0; i < bad.length; i++) {
        LaunchConfig config = bad[i];
        refused(() -> stream.launch(kernel, config), expected[i]);
        refused(() -> kernel.pack().launch(stream, config), expected[i]);
      }
      assertThat(script.count("launchKernel")).isZero();
      kernel.allowDynamicSharedBytes(stream.device(), 50_000);
      assertThatCode(() -> stream.launch(kernel, SMALL.withDynamicSharedBytes(50_000)))
          .doesNotThrowAnyException();
    }
  }

  @CudaTest
  void sharedMemory_isAllowedUpToWhatTheStaticPartLeaves(Cuda cuda, ScriptedDriver script) {
    CudaDevice device = cuda.device(0);
    int most = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - 1024;
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("countBytes"); // 1,024 bytes
      for (int wrong : new int[] {most + 1, most + 1024, -1, Integer.MAX_VALUE}) {
        refused(
            () -> kernel.allowDynamicSharedBytes(device, wrong),
            "bytes: %d (expected: 0 to %d)".formatted(wrong, most));
      }
      assertThat(script.count("kernelSetAttribute")).isZero();
      kernel.allowDynamicSharedBytes(device, most);
    }
  }

  @CudaTest
  void arguments_areAsManyAndAsLargeAsTheParameters(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = cuda.allocate(64, stream)) {
      CudaKernel scale = module.kernel("scale");
      refused(
          () -> stream.launch(scale, SMALL, data, 2f),
          "2 arguments (expected: 3, the parameters of kernel scale of [8, 4, 4] bytes)");
      refused(() -> scale.pack(data, 2f, 16, 1), "4 arguments (expected: 3");
      refused(
          () -> stream.launch(scale, SMALL, data, 2.0, 16),
          "argument 1: double 2.0 of 8 bytes (expected: 4 bytes: an int or float)");
      refused(() -> stream.launch(scale, SMALL, data, 2f, 16L), "argument 2: long 16 of 8 bytes");
      refused(
          () -> stream.launch(scale, SMALL, 5, 2f, 16),
          "argument 0: int 5 of 4 bytes (expected: 8 bytes: a Buffer, long or double)");
      refused(
          () -> stream.launch(scale, SMALL, MemorySegment.ofArray(new float[16]), 2f, 16),
          "argument 0: heap MemorySegment, passed as a structure by value, of 64 bytes",
          "(expected: 8 bytes: a Buffer, long or double; data of the host is passed as a Buffer");
      refused(
          () -> stream.launch(scale, SMALL, new float[16], 2f, 16),
          "argument 0: float[] (expected: a Buffer, a number, a boolean, or a MemorySegment",
          "copy arrays of Java into a Buffer, take the buffer() of a CudaArray)");
      refused(() -> stream.launch(scale, SMALL, data, "2", 16), "argument 1: java.lang.String");
      refused(
          () -> stream.launch(scale, SMALL, data, 2f, new AtomicInteger(16)),
          "argument 2: java.util.concurrent.atomic.AtomicInteger (expected: a Buffer");
      assertThatThrownBy(() -> stream.launch(scale, SMALL, data, null, 16))
          .isInstanceOf(NullPointerException.class)
          .hasMessageContaining("argument 1");
      assertThat(script.count("launchKernel")).isZero();
    }
  }

  interface Returning {
    int scale(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);
  }

  interface WithoutStream {
    void scale(Buffer data, float factor, int count);
  }

  interface Short {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, float factor);
  }

  interface Wide {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, double factor, int count);
  }

  interface Boxed {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, Float factor, int count);
  }

  interface Fitting {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);
  }

  interface WithDefault extends Fitting {
    default void twice(CudaStream stream, LaunchConfig config, Buffer data, int count) {
      scale(stream, config, data, 2, count);
    }
  }

  interface Generic<T> {
    void scale(CudaStream stream, LaunchConfig config, T data, float factor, int count);
  }

  /** The compiler gives it a method with a body, which forwards. */
  interface OfBuffers extends Generic<Buffer> {
    @Override
    void scale(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);
  }

  interface NoArguments {
    void run(CudaStream stream, LaunchConfig config);
  }

  sealed interface Sealed {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);
  }

  record Only() implements Sealed {
    @Override
    public void scale(
        CudaStream stream, LaunchConfig config, Buffer data, float factor, int count) {}
  }

  @CudaTest
  void interfaceOfAGenericOne_launches_byEither(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = cuda.allocate(12, stream)) {
      CudaKernel scale = module.kernel("scale");
      data.copyFrom(MemorySegment.ofArray(new float[] {1, 2, 3}));
      cuda.device(0).synchronize();
      refused(() -> scale.bind(Sealed.class), "Sealed", "and not sealed");
      refused(() -> scale.bind(Generic.class), "java.lang.Object");
      OfBuffers bound = scale.bind(OfBuffers.class);
      bound.scale(stream, SMALL, data, 2, 3);
      Generic<Buffer> general = bound;
      general.scale(stream, SMALL, data, 5, 3);
      float[] found = new float[3];
      stream.synchronize();
      data.copyTo(MemorySegment.ofArray(found));
      assertThat(found).containsExactly(10, 20, 30);
    }
  }

  @CudaTest
  void namesAndPtx_endWhereTheyEnd(Cuda cuda, ScriptedDriver script) {
    byte[] code = TestKernels.code("launches.ptx");
    try (CudaModule module = CudaModule.load(cuda, Arrays.copyOf(code, code.length + 3))) {
      assertThat(module.kernel("scale").name()).isEqualTo("scale");
      long before = script.count("libraryGetKernel");
      refused(() -> module.kernel("scale\0"), "name: character 0 at index 5");
      refused(() -> module.kernel("\ud800"), "name: half of a surrogate pair at index 0");
      assertThat(script.count("libraryGetKernel")).isEqualTo(before);
    }
    long loaded = script.count("libraryLoadData");
    code[code.length / 2] = 0;
    refused(
        () -> CudaModule.load(cuda, code),
        "PTX with a 0 at index %d of %d".formatted(code.length / 2, code.length));
    assertThat(script.count("libraryLoadData")).isEqualTo(loaded);
  }

  @CudaTest
  void blocksThatNoDeviceRuns_areNotCounted(Cuda cuda) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      refused(
          () ->
              kernel.maxResidentBlocks(
                  cuda.device(0), SMALL.withBlock(Dim3.of(65_536, 65_536, 65_536))),
          "threads of a block: 281474976710656 (expected: <= 1024");
    }
  }

  @CudaTest
  void interfaces_fitTheKernel(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = cuda.allocate(64, stream)) {
      CudaKernel scale = module.kernel("scale");
      refused(() -> scale.bind(Returning.class), "Returning", "which returns nothing");
      refused(() -> scale.bind(String.class), "java.lang.String");
      refused(() -> scale.bind(TimerTask.class), "an interface with one abstract method");
      refused(() -> scale.bind(WithoutStream.class), "CudaStream and LaunchConfig");
      refused(() -> scale.bind(Short.class), "2 parameters", "(expected: 3");
      refused(() -> scale.bind(Wide.class), "argument 1: double (expected: 4 bytes");
      refused(() -> scale.bind(Boxed.class), "java.lang.Float");
      refused(() -> scale.bind(WithDefault.class), "has default methods");
      module.kernel("doNothing").bind(NoArguments.class).run(stream, SMALL);
      data.fill(0, stream);
      Fitting fitting = scale.bind(Fitting.class);
      fitting.scale(stream, SMALL, data, 2, 16);
      assertThat(fitting).isEqualTo(fitting).isNotEqualTo(scale).hasToString("kernel scale");
      assertThatThrownBy(() -> fitting.scale(stream, SMALL, null, 1, 16))
          .isInstanceOf(NullPointerException.class);
      stream.synchronize();
    }
  }

  @CudaTest
  void closedThings_areNamed(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaModule module = TestKernels.launches(cuda);
    CudaKernel scale = module.kernel("scale");
    Buffer data = cuda.allocate(64, stream);
    KernelArguments packed = scale.pack(data, 2f, 16);
    data.close();
    closed(() -> packed.launch(stream, SMALL), "64 bytes");
    closed(() -> scale.pack(data, 2f, 16), "64 bytes");
    closed(() -> stream.launch(scale, SMALL, data, 2f, 16), "64 bytes");
    module.close();
    module.close();
    assertThat(module.isClosed()).isTrue();
    closed(() -> stream.launch(scale, SMALL, 0L, 2f, 16), "module 0x");
    closed(() -> packed.launch(stream, SMALL), "module 0x");
    closed(() -> module.kernel("scale"), "module 0x");
    closed(() -> module.kernel("countBytes"), "module 0x");
    closed(module::kernelNames, "module 0x");
    closed(scale::handle, "module 0x");
    closed(() -> scale.pack(0L, 2f, 16), "module 0x");
    CudaDevice device = cuda.device(0);
    closed(() -> scale.attribute(KernelAttribute.NUM_REGS, device), "module 0x");
    closed(() -> scale.allowDynamicSharedBytes(device, 1_000), "module 0x");
    closed(() -> scale.setAttribute(KernelAttribute.CACHE_MODE_CA, 1, device), "module 0x");
    closed(() -> scale.maxActiveBlocks(device, 32, 0), "module 0x");
    closed(() -> scale.maxPotentialBlockSize(device, 0, 0), "module 0x");
    closed(() -> scale.availableDynamicSharedBytes(device, 1, 32), "module 0x");
    closed(() -> scale.maxActiveClusters(device, SMALL), "module 0x");
    closed(() -> scale.maxPotentialClusterSize(device, SMALL), "module 0x");
    closed(() -> scale.maxResidentBlocks(device, SMALL), "module 0x");
    try (GraphDefinition definition = new GraphDefinition(device)) {
      closed(() -> definition.root().launch(scale, SMALL, 0L, 2f, 16), "module 0x");
      assertThat(definition.nodes()).isEmpty();
    }
  }

  private static void closed(ThrowingCallable call, String what) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(what)
        .hasMessageContaining("closed");
  }

  @CudaTest
  void names_areListedWhenOneIsUnknown(Cuda cuda) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      assertThatThrownBy(() -> module.kernel("subtract"))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining(
              "no kernel subtract (expected: one of [addValues, addVectors, countBytes, doNothing,"
                  + " scale, sumAll, sumBlocks])");
    }
  }

  @CudaTest
  void code_thatIsNone_isRefused(Cuda cuda) {
    refused(() -> CudaModule.load(cuda, new byte[0]), "image: 0 bytes");
    refused(
        () -> CudaModule.load(cuda, "no code".getBytes(StandardCharsets.US_ASCII)),
        "7 bytes that begin with [6e 6f 20 63 6f 64 65] (expected: PTX with .version and .target, a"
            + " cubin or a fatbin)");
  }

  @CudaTest(simulatedOnly = true)
  void codeThatIsNone_hasWhatTheDriverSaidWithIt(Cuda cuda, ScriptedDriver script) {
    script.fail("libraryLoadData", CudaStatus.INVALID_IMAGE);
    assertThatThrownBy(() -> CudaModule.load(cuda, new byte[] {1, 2, 3}))
        .isInstanceOf(IllegalArgumentException.class)
        .satisfies(e -> assertThat(e.getSuppressed()).hasOnlyElementsOfType(CudaException.class))
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
  }

  @CudaTest(devices = 2)
  void configuration_isHeldAgainstTheDeviceOfTheStream_notAgainstAnother(
      Cuda cuda, CudaStream stream, @OnDevice(1) CudaStream other, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      LaunchConfig large = SMALL.withDynamicSharedBytes(50_000);
      kernel.allowDynamicSharedBytes(stream.device(), 50_000);
      KernelArguments packed = kernel.pack();
      packed.launch(stream, large);
      long before = script.count("launchKernel");
      String[] parts = {"dynamicSharedBytes: 50000 (expected: <= 49152", "device 1"};
      refused(() -> packed.launch(other, large), parts);
      refused(() -> other.launch(kernel, large), parts);
      assertThat(script.count("launchKernel")).isEqualTo(before);
      stream.launch(kernel, large);
      stream.synchronize();
      kernel.allowDynamicSharedBytes(other.device(), 50_000);
      other.launch(kernel, large);
      other.synchronize();
    }
  }

  @CudaTest(devices = 2)
  void memoryOfAnotherDevice_needsAccess(
      Cuda cuda, CudaStream stream, @OnDevice(1) CudaStream other) {
    checkAccess(cuda, stream, other);
    checkAccess(cuda, other, stream);
  }

  @CudaTest(devices = 2)
  void memoryOfAPoolOfTheDriver_thatGrantsNoAccess_isNamed(
      Cuda cuda,
      @OnDevice(1) DeviceMemoryResource resource,
      @OnDevice(1) CudaStream other,
      CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = resource.allocate(64, other)) {
      CudaKernel scale = module.kernel("scale");
      refused(
          () -> stream.launch(scale, SMALL, data, 2f, 16),
          "%s of %s (expected: memory that %s, which runs kernel scale, has access to: its own"
              .formatted(data, other.device(), stream.device()));
    }
  }

  /** Memory of the other stream's device, before and after its peer may use it. */
  private static void checkAccess(Cuda cuda, CudaStream stream, CudaStream other) {
    CudaDevice device = stream.device();
    String needed =
        "of %s (expected: memory of %s, which runs kernel scale".formatted(other.device(), device);
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = MemoryResource.direct().allocate(64, other)) {
      CudaKernel scale = module.kernel("scale");
      data.fill(0, other);
      other.synchronize();
      refused(() -> stream.launch(scale, SMALL, data, 2f, 16), needed);
      KernelArguments packed = scale.pack(data, 2f, 16);
      refused(() -> packed.launch(stream, SMALL), needed);
      packed.launch(other, SMALL);
      other.synchronize();
      if (device.canAccess(other.device())) {
        device.enablePeerAccess(other.device());
        stream.launch(scale, SMALL, data, 2f, 16);
        stream.synchronize();
      }
    }
  }

  /** More bytes than a parameter has would be those of the next one. */
  @CudaTest
  void argumentsOfEveryType_areHeldAgainstTheSizeOfTheParameter(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = cuda.allocate(64, stream)) {
      CudaKernel scale = module.kernel("scale");
      Object[] wrong = {data, 7L, 7.0, (short) 7, '7', (byte) 7, true};
      String[] named = {
        "device buffer of 64 bytes at ",
        "long 7 of 8",
        "double 7.0 of 8",
        "short 7 of 2",
        "char 7 of 2",
        "byte 7 of 1",
        "boolean true of 1"
      };
      for (int i = 0; i < wrong.length; i++) {
        Object argument = wrong[i];
        refused(
            () -> stream.launch(scale, SMALL, data, argument, 16),
            "argument 1: ",
            named[i],
            " bytes (expected: 4 bytes: an int or float)");
      }
      for (Object argument : new Object[] {7, 7f}) {
        refused(
            () -> stream.launch(scale, SMALL, argument, 2f, 16),
            "argument 0: ",
            " of 4 bytes (expected: 8 bytes: a Buffer, long or double)");
      }
      assertThat(script.count("launchKernel")).isZero();
    }
  }

  interface Nothing {
    void scale();
  }

  interface StreamAlone {
    void scale(CudaStream stream);
  }

  interface ConfigFirst {
    void scale(LaunchConfig config, CudaStream stream, Buffer data, float factor, int count);
  }

  interface NumberSecond {
    void scale(CudaStream stream, int blocks, Buffer data, float factor, int count);
  }

  interface OfText {
    void scale(CudaStream stream, LaunchConfig config, String data, float factor, int count);
  }

  @CudaTest(simulatedOnly = true)
  void interfaces_beginWithStreamAndConfiguration_andHaveValuesBehind(Cuda cuda) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel scale = module.kernel("scale");
      for (Class<?> wrong :
          List.of(Nothing.class, StreamAlone.class, ConfigFirst.class, NumberSecond.class)) {
        refused(() -> scale.bind(wrong), "CudaStream and LaunchConfig as its first two");
      }
      refused(() -> scale.bind(OfText.class), "java.lang.String (expected: a Buffer");
    }
  }
}
