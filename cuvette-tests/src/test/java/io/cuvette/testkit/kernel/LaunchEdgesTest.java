package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
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
import io.cuvette.KernelAttribute;
import io.cuvette.LaunchConfig;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Latches;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The last value that is right and the first that is wrong, and what launches keep from pools. */
class LaunchEdgesTest {
  private static final LaunchConfig ONE = LaunchConfig.of(1, 1);

  private static void refused(ThrowingCallable call, String... parts) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(parts);
  }

  @Test
  void blocksOfAllClusters_areAtMostAnInt_inEachDimension() {
    int most = Integer.MAX_VALUE;
    assertThat(ONE.withGrid(new Dim3(most, most, most)).blocks().z()).isEqualTo(most);
    assertThat(ONE.withGrid(Dim3.of(3, 5, 7)).withCluster(Dim3.of(2, 3, 4)).blocks())
        .isEqualTo(new Dim3(6, 15, 28));
    refused(() -> ONE.withGrid(Dim3.of(most)).withCluster(Dim3.of(2)), "grid in x: 2147483647");
    refused(
        () -> ONE.withGrid(Dim3.of(1, most)).withCluster(Dim3.of(1, 2)), "grid in y: 2147483647");
    refused(
        () -> ONE.withGrid(Dim3.of(1, 1, most)).withCluster(Dim3.of(1, 1, 2)),
        "grid in z: 2147483647");
    assertThat(ONE.withProgrammaticStreamSerialization(true).programmaticStreamSerialization())
        .isTrue();
  }

  /** Launches that pass the checks go no further. */
  @CudaTest
  void limits_areExact(Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    CudaDevice device = stream.device();
    int optIn = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel nothing = module.kernel("doNothing");
      CudaKernel withStatic = module.kernel("countBytes"); // 1,024 bytes
      withStatic.allowDynamicSharedBytes(device, optIn - 1_024);
      nothing.allowDynamicSharedBytes(device, optIn);
      script.answer("launchKernel", _ -> null);
      LaunchConfig[] right = {
        ONE.withGrid(Dim3.of(Integer.MAX_VALUE)),
        ONE.withGrid(Dim3.of(1, 65_535, 65_535)),
        ONE.withBlock(Dim3.of(1_024)),
        ONE.withBlock(Dim3.of(1, 1_024)),
        ONE.withBlock(Dim3.of(1, 1, 64)),
        ONE.withBlock(Dim3.of(16, 1, 64)),
        ONE.withDynamicSharedBytes(optIn)
      };
      LaunchConfig[] wrong = {
        ONE.withGrid(Dim3.of(1, 65_536)),
        ONE.withGrid(Dim3.of(1, 1, 65_536)),
        ONE.withBlock(Dim3.of(1_025)),
        ONE.withBlock(Dim3.of(1, 1_025)),
        ONE.withBlock(Dim3.of(1, 1, 65)),
        ONE.withBlock(Dim3.of(25, 41)),
        ONE.withDynamicSharedBytes(optIn + 1)
      };
      for (LaunchConfig config : right) {
        assertThatCode(() -> stream.launch(nothing, config)).doesNotThrowAnyException();
      }
      long before = script.count("launchKernel");
      String[] expected = {
        "blocks in y: 65536",
        "blocks in z: 65536",
        "threads of a block in x: 1025",
        "threads of a block in y: 1025",
        "threads of a block in z: 65",
        "threads of a block: 1025",
        "dynamicSharedBytes: " + (optIn + 1)
      };
      for (int i = 0; i < wrong.length; i++) {
        LaunchConfig config = wrong[i];
        refused(() -> stream.launch(nothing, config), expected[i] + " (expected: <= ");
      }
      assertThat(script.count("launchKernel")).isEqualTo(before);
      LaunchConfig full = ONE.withDynamicSharedBytes(optIn - 1_024);
      stream.launch(withStatic, full, 0L, 0L, 0);
      refused(
          () -> stream.launch(withStatic, full.withDynamicSharedBytes(optIn - 1_023), 0L, 0L, 0),
          "dynamicSharedBytes: %d (expected: <= %d, what device 0 has"
              .formatted(optIn - 1_023, optIn - 1_024),
          "less the 1024 static bytes of kernel countBytes");
    }
  }

  @CudaTest
  void clustersAndCooperativeGrids_areExact(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    CudaDevice device = stream.device();
    assumeTrue(device.attributes().getOrDefault(DeviceAttribute.CLUSTER_LAUNCH, 0) == 1, "none");
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      script.answer("launchKernel", _ -> null);
      stream.launch(kernel, ONE.withCluster(Dim3.of(8)));
      refused(
          () -> stream.launch(kernel, ONE.withCluster(Dim3.of(9))),
          "is 9 blocks (expected: <= 8, or up to 16 with KernelAttribute.NON_PORTABLE");
      kernel.setAttribute(KernelAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, device);
      stream.launch(kernel, ONE.withCluster(Dim3.of(16)));
      refused(
          () -> stream.launch(kernel, ONE.withCluster(Dim3.of(17))),
          "is 17 blocks (expected: <= 16)");
      LaunchConfig all = LaunchConfig.of(1, 1_024).withCooperative(true);
      long resident = kernel.maxResidentBlocks(device, all);
      assertThat(resident)
          .isEqualTo(
              (long) device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
                  * kernel.maxActiveBlocks(device, 1_024, 0));
      stream.launch(kernel, all.withGrid(Dim3.of(resident)));
      refused(
          () -> stream.launch(kernel, all.withGrid(Dim3.of(resident + 1))),
          "cooperative launch of %d blocks (expected: <= %d, those of kernel doNothing that device %d can run at once)"
              .formatted(resident + 1, resident, device.id()));
    }
  }

  /** A driver refuses that for kernels whose code does not say so. */
  @CudaTest
  void clusterThatAKernelMustHave_isCheckedInEachDimension(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    assumeTrue(cuda.isSimulated(), "the code of a kernel says which cluster it must have");
    CudaDevice device = stream.device();
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      script.answer("launchKernel", _ -> null);
      kernel.setAttribute(KernelAttribute.REQUIRED_CLUSTER_WIDTH, 2, device);
      kernel.setAttribute(KernelAttribute.REQUIRED_CLUSTER_HEIGHT, 1, device);
      kernel.setAttribute(KernelAttribute.REQUIRED_CLUSTER_DEPTH, 4, device);
      stream.launch(kernel, ONE.withCluster(Dim3.of(2, 1, 4)));
      for (Dim3 other : List.of(Dim3.of(4, 1, 2), Dim3.of(2, 4, 1), Dim3.of(2, 2, 2))) {
        refused(
            () -> stream.launch(kernel, ONE.withCluster(other)),
            "(expected: (2, 1, 4), for which kernel doNothing was compiled)");
      }
    }
  }

  @CudaTest
  void blocksThatRunAtOnce_areFewerWithMoreSharedMemory(Cuda cuda, @NonBlocking CudaStream stream) {
    CudaDevice device = stream.device();
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      assertThat(kernel.maxActiveBlocks(device, 32, 40_000))
          .isPositive()
          .isLessThan(kernel.maxActiveBlocks(device, 32, 0));
    }
  }

  /** The pool lends nothing of it before the launch is done. */
  @CudaTest
  void closedBuffer_isNotLent_whileALaunchOfAnotherStreamUsesIt(
      Cuda cuda, @NonBlocking CudaStream own, @NonBlocking CudaStream other) {
    CountDownLatch go = new CountDownLatch(1);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel scale = module.kernel("scale");
      Buffer data = cuda.allocate(512, own);
      long address = data.address();
      data.fill((byte) 0, own);
      own.synchronize();
      stream(other, scale, data);
      other.synchronize();
      CompletableFuture<Void> held = other.addCallback(() -> Latches.await(go));
      stream(other, scale, data);
      data.close();
      try (Buffer next = cuda.allocate(512, own)) {
        assertThat(next.address()).isNotEqualTo(address);
      }
      go.countDown();
      held.join();
      other.synchronize();
    } finally {
      go.countDown();
    }
  }

  private static void stream(CudaStream stream, CudaKernel scale, Buffer data) {
    stream.launch(scale, LaunchConfig.of(1, 32), data, 1f, 32);
  }

  interface Values {
    void add(
        CudaStream stream,
        LaunchConfig config,
        boolean one,
        char two,
        double eight,
        MemorySegment pair,
        Buffer out);
  }

  interface Ints {
    void add(
        CudaStream stream,
        LaunchConfig config,
        byte one,
        int two,
        double eight,
        MemorySegment pair,
        Buffer out);
  }

  interface Bytes {
    void add(
        CudaStream stream,
        LaunchConfig config,
        short one,
        short two,
        double eight,
        MemorySegment pair,
        Buffer out);
  }

  interface Shorts {
    void add(
        CudaStream stream,
        LaunchConfig config,
        byte one,
        boolean two,
        double eight,
        MemorySegment pair,
        Buffer out);
  }

  /** What an object has anyway is no second method. */
  interface WithTexts {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);

    @Override
    boolean equals(Object other);

    @Override
    String toString();
  }

  @CudaTest
  void addressesAsNumbers_andInterfacesWithMethodsOfObjects_launch(
      Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        PinnedBuffer data = cuda.allocatePinned(Float.BYTES)) {
      CudaKernel scale = module.kernel("scale");
      data.segment().set(ValueLayout.JAVA_FLOAT, 0, 3);
      stream.launch(scale, ONE, data.address(), 2f, 1);
      stream.synchronize();
      assertThat(data.segment().get(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(6);
      WithTexts bound = scale.bind(WithTexts.class);
      bound.scale(stream, ONE, data, 2, 1);
      stream.synchronize();
      assertThat(data.segment().get(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(12);
      assertThat(bound).isEqualTo(bound).hasToString("kernel scale").hasSameHashCodeAs(bound);
    }
  }

  private static MemorySegment pair() {
    MemorySegment pair = MemorySegment.ofArray(new long[2]);
    pair.set(ValueLayout.JAVA_FLOAT, 0, 0.5f);
    pair.set(ValueLayout.JAVA_DOUBLE, 8, 1e6);
    return pair;
  }

  @CudaTest
  void smallTypes_haveTheirSizes(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        PinnedBuffer out = cuda.allocatePinned(Long.BYTES)) {
      CudaKernel values = module.kernel("addValues");
      values.bind(Values.class).add(stream, ONE, true, (char) 2_000, 0.5, pair(), out);
      stream.synchronize();
      assertThat(out.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(1 + 2_000 + 1_000_001);
      values.bind(Values.class).add(stream, ONE, false, (char) 2_000, 0.5, pair(), out);
      stream.synchronize();
      assertThat(out.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(2_000 + 1_000_001);
      refused(
          () -> values.bind(Ints.class), "argument 1: int (expected: 2 bytes: a short or char)");
      refused(
          () -> stream.launch(values, ONE, 'a', (short) 1, 0.5, pair(), out),
          "argument 0: char a of 2 bytes (expected: 1 byte: a byte or boolean)");
      refused(
          () -> stream.launch(values, ONE, (byte) 1, (byte) 2, 0.5, pair(), out),
          "argument 1: byte 2 of 1 bytes (expected: 2 bytes");
      refused(
          () -> stream.launch(values, ONE, (byte) 1, true, 0.5, pair(), out),
          "argument 1: boolean true of 1 bytes");
      refused(
          () -> stream.launch(values, ONE, (byte) 1, (short) 2, (short) 3, pair(), out),
          "argument 2: short 3 of 2 bytes (expected: 8 bytes");
    }
  }

  private static void hideParameters(ScriptedDriver script) {
    script.answer(
        "kernelGetParamInfo",
        _ -> {
          throw new CudaException(
              CudaStatus.CALL_REQUIRES_NEWER_DRIVER,
              "cuGetProcAddress(symbol=cuKernelGetParamInfo, version=12040)",
              "not there");
        });
  }

  /** Each is where C would have it in a structure of them. */
  @CudaTest(simulatedOnly = true)
  void argumentsOfParametersThatAreNotKnown_lieOneAfterTheOther_asTheyAreAligned(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    hideParameters(script);
    List<KernelParameter> places = new ArrayList<>();
    script.answer(
        "launchKernel",
        call -> {
          places.addAll(call.argument("parameters", LaunchParameters.class).places());
          return null;
        });
    try (CudaModule module = TestKernels.launches(cuda)) {
      stream.launch(module.kernel("addValues"), ONE, (byte) 1, (short) 2, 3, 4.0, pair(), true, 5L);
    }
    assertThat(places)
        .containsExactly(
            new KernelParameter(0, 1),
            new KernelParameter(2, 2),
            new KernelParameter(4, 4),
            new KernelParameter(8, 8),
            new KernelParameter(16, 16),
            new KernelParameter(32, 1),
            new KernelParameter(40, 8));
  }

  /** As drivers before CUDA 12.4, which do not tell the parameters. */
  @CudaTest
  void parametersThatAreNotKnown_areTakenFromTheArguments(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    hideParameters(script);
    try (CudaModule module = TestKernels.launches(cuda);
        PinnedBuffer out = cuda.allocatePinned(Long.BYTES)) {
      CudaKernel values = module.kernel("addValues");
      assertThat(values.parameters()).isEmpty();
      stream.launch(values, ONE, (byte) -3, (short) 2_000, 0.5, pair(), out);
      stream.synchronize();
      assertThat(out.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(-3 + 2_000 + 1_000_001);
      values.pack((byte) 5, (short) 0, 0.0, pair(), out).launch(stream, ONE);
      stream.synchronize();
      assertThat(out.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(5 + 1_000_000);
      values.bind(Values.class).add(stream, ONE, true, (char) 1, 1, pair(), out);
      stream.synchronize();
      assertThat(out.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(1 + 1 + 1 + 1_000_000);
      refused(() -> stream.launch(values, ONE, "text"), "argument 0: java.lang.String");
      assertThatThrownBy(() -> stream.launch(values, ONE, (Object) null))
          .isInstanceOf(NullPointerException.class)
          .hasMessageContaining("argument 0");
    }
  }

  interface ByteForTwo {
    void add(
        CudaStream stream,
        LaunchConfig config,
        boolean one,
        byte two,
        double eight,
        MemorySegment pair,
        Buffer out);
  }

  interface BooleanForTwo {
    void add(
        CudaStream stream,
        LaunchConfig config,
        byte one,
        boolean two,
        double eight,
        MemorySegment pair,
        Buffer out);
  }

  /** A byte is no structure, whose size only its value has. */
  @CudaTest(simulatedOnly = true)
  void byteWhereTheKernelHasTwo_isRefusedBeforeAnyLaunch(Cuda cuda) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel values = module.kernel("addValues");
      refused(
          () -> values.bind(ByteForTwo.class),
          "argument 1: byte (expected: 2 bytes: a short or char)");
      refused(
          () -> values.bind(BooleanForTwo.class),
          "argument 1: boolean (expected: 2 bytes: a short or char)");
    }
  }

  /** The configuration of a launch is the second alone. */
  interface ConfigTwice {
    void scale(LaunchConfig first, LaunchConfig config, Buffer data, float factor, int count);
  }

  @CudaTest
  void kernelOfAModule_isKnownToIt_andToTheDriver(Cuda cuda) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel scale = module.kernel("scale");
      CudaKernel nothing = module.kernel("doNothing");
      assertThat(scale.module()).isSameAs(module);
      assertThat(scale.handle()).isNotZero().isNotEqualTo(nothing.handle());
      assertThat(cuda.driver().kernels().kernelGetAttribute(0, scale.handle(), 0))
          .isEqualTo(scale.attribute(KernelAttribute.MAX_THREADS_PER_BLOCK, cuda.device(0)));
      assertThatThrownBy(() -> scale.bind(ConfigTwice.class))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("CudaStream and LaunchConfig as its first two");
    }
  }

  /** What everybody sees may call itself. */
  public interface Doubling {
    void scale(CudaStream stream, LaunchConfig config, Buffer data, float factor, int count);

    default void twice(CudaStream stream, LaunchConfig config, Buffer data, int count) {
      scale(stream, config, data, 2, count);
    }
  }

  @CudaTest
  void defaultMethodOfAPublicInterface_launches(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer data = cuda.allocate(8, stream)) {
      data.copyFrom(MemorySegment.ofArray(new float[] {3, 4}));
      Doubling doubling = module.kernel("scale").bind(Doubling.class);
      doubling.twice(stream, LaunchConfig.of(1, 32), data, 2);
      float[] found = new float[2];
      stream.synchronize();
      data.copyTo(MemorySegment.ofArray(found));
      assertThat(found).containsExactly(6, 8);
    }
  }
}
