package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT32;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** Arrays that go to other libraries and come from them. */
class DlpackTest {
  private static final double SUM = 1 + 2 * 2 + 3 * 3 + 4 * 4 + 5 * 5 + 6 * 6;

  /** What a thread of the library does soon. */
  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      Thread.onSpinWait();
    }
  }

  private static long used(Cuda cuda) {
    return cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes();
  }

  private static long usedPinned(Cuda cuda) {
    return cuda.defaultPinnedMemoryPool().stats().usedBytes();
  }

  private static HostArray numbers(Cuda cuda) {
    HostArray a = HostArray.emptyPinned(cuda, FLOAT32, 2, 3);
    for (int i = 0; i < 6; i++) {
      a.setDouble(i + 1, i / 3, i % 3);
    }
    return a;
  }

  @Test
  void structures_areThoseOfC() throws Exception {
    DlpackLibrary c = DlpackLibrary.open();
    assertThat(
            Arrays.stream(new int[] {0, 1, 2, 3, 4, 5, 6, 7}).map(i -> (int) c.call("layout", i)))
        .containsExactly(80, 64, 16, 24, 32, 56, 20, 40);
  }

  @CudaTest
  void deviceArray_comesBackAtItsAddress(Cuda cuda) {
    for (boolean versioned : new boolean[] {true, false}) {
      CudaArray a = CudaArrays.of(cuda).array(new float[][] {{1, 2, 3}, {4, 5, 6}});
      CudaArray turned = a.transpose();
      DlpackTensor tensor = Dlpack.export(turned, DlpackOptions.DEFAULTS.withVersioned(versioned));
      try (CudaArray back = (CudaArray) Dlpack.take(cuda, tensor)) {
        assertThat(back.address()).isEqualTo(a.address());
        assertThat(back.layout()).isEqualTo(turned.layout());
        a.close(); // the importer has it still
        assertThat(back.toArray(float[][].class))
            .isDeepEqualTo(new float[][] {{1, 4}, {2, 5}, {3, 6}});
        assertThat(used(cuda)).isPositive();
      }
      await(() -> used(cuda) == 0);
    }
  }

  @CudaTest
  void eachTypeAndKindOfMemory_goesBothWays(Cuda cuda) {
    for (ElementType type : ElementType.values()) {
      try (CudaArray a = CudaArrays.of(cuda).ones(type, 5);
          CudaArray back = (CudaArray) Dlpack.take(cuda, Dlpack.export(a))) {
        assertThat(back.type()).isEqualTo(type);
        assertThat(back.address()).isEqualTo(a.address());
      }
    }
    try (Buffer managed = cuda.allocateManaged(64)) {
      CudaArray a = CudaArrays.of(cuda).wrap(managed, FLOAT32, Layout.of(16));
      assertThat(Dlpack.deviceType(a)).isEqualTo(13);
      try (CudaArray back = (CudaArray) Dlpack.take(cuda, Dlpack.export(a))) {
        assertThat(Dlpack.deviceType(back)).isEqualTo(13);
        assertThat(back.address()).isEqualTo(managed.address());
      }
    }
    try (HostArray a = numbers(cuda);
        HostArray back = (HostArray) Dlpack.take(cuda, Dlpack.export(a))) {
      assertThat(back.segment().address()).isEqualTo(a.segment().address());
      assertThat(back.toArray(float[][].class)).isDeepEqualTo(a.toArray(float[][].class));
    }
    try (CudaArray none = CudaArrays.of(cuda).zeros(FLOAT32, 3, 0);
        NdArray back = Dlpack.take(cuda, Dlpack.export(none))) {
      assertThat(back.shape()).containsExactly(3, 0);
    }
    await(() -> used(cuda) == 0 && usedPinned(cuda) == 0);
  }

  @CudaTest
  void consumerInC_readsAndDeletesOnItsThread(Cuda cuda) throws Exception {
    DlpackLibrary c = DlpackLibrary.open();
    HostArray a = numbers(cuda);
    DlpackTensor tensor = Dlpack.export(a);
    assertThat(c.read("read_new", tensor.address())).isEqualTo(SUM * 1.0);
    assertThat(c.call("number_of", tensor.address(), 1)).isEqualTo(3);
    DlpackTensor old = Dlpack.export(a, DlpackOptions.DEFAULTS.withVersioned(false));
    assertThat(c.read("read_old", old.address())).isEqualTo(SUM);
    DlpackTensor plain = Dlpack.export(a, DlpackOptions.DEFAULTS.withPlainHost(true));
    assertThat(c.call("number_of", plain.address(), 1)).isEqualTo(1);
    DlpackTensor copy = Dlpack.export(a, DlpackOptions.DEFAULTS.withCopy(true));
    assertThat(c.call("number_of", copy.address(), 0)).isEqualTo(DlpackStructure.IS_COPIED);
    assertThat(c.call("number_of", copy.address(), 3)).isNotEqualTo(a.segment().address());
    assertThat(c.read("read_new", copy.address())).isEqualTo(SUM);
    a.close();
    assertThat(c.read("read_new", tensor.address())).as("closed here").isEqualTo(SUM);
    assertThat(usedPinned(cuda)).isPositive();
    for (DlpackTensor each : List.of(tensor, plain, copy)) {
      long _ = c.call("delete_elsewhere", each.address());
    }
    old.delete();
    old.delete(); // harmless
    await(() -> usedPinned(cuda) == 0);
  }

  @CudaTest
  void producerInC_isGivenItsMemoryBackOnce(Cuda cuda) throws Exception {
    DlpackLibrary c = DlpackLibrary.open();
    int before = c.deletions();
    HostArray a = (HostArray) Dlpack.take(cuda, new DlpackTensor(c.call("produce", 0L), true));
    assertThat(a.toArray(float[][].class)).isDeepEqualTo(new float[][] {{1, 2, 3}, {5, 6, 7}});
    a.setDouble(9, 0, 0);
    HostArray view = a.transpose();
    DlpackTensor on = Dlpack.export(view); // it goes on, and keeps the memory
    a.close();
    a.close();
    assertThat(view.isClosed()).isTrue();
    assertThat(c.deletions()).isEqualTo(before);
    assertThatThrownBy(() -> view.getDouble(0, 0)).isInstanceOf(IllegalStateException.class);
    on.delete();
    await(() -> c.deletions() == before + 1);
    long old = c.call("produce_old"); // null strides: order C
    try (NdArray plain = Dlpack.take(cuda, new DlpackTensor(old, false))) {
      assertThat(plain.toArray(float[][].class))
          .isDeepEqualTo(new float[][] {{1, 2, 3}, {4, 5, 6}});
    }
    assertThat(c.deletions()).isEqualTo(before + 2);
  }

  /** What has no owner any more would be read after it was freed. */
  @CudaTest
  void tensorOfThisProcess_isTakenOnce_andNotAfterItsEnd(Cuda cuda) {
    for (boolean versioned : new boolean[] {true, false}) {
      DlpackOptions options = DlpackOptions.DEFAULTS.withVersioned(versioned);
      for (ArrayModule<?> module : List.of(CudaArrays.of(cuda), HostArrays.of(cuda))) {
        NdArray a = module.full(FLOAT32, 3L, 4);
        DlpackTensor tensor = Dlpack.export(a, options);
        a.close();
        NdArray taken = Dlpack.take(cuda, tensor);
        assertThatThrownBy(() -> Dlpack.take(cuda, tensor))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("was taken or deleted");
        tensor.delete(); // the array has it
        assertThat(used(cuda) + usedPinned(cuda)).isPositive();
        assertThat(taken.toArray(float[].class)).containsOnly(3);
        taken.close();
        await(() -> used(cuda) + usedPinned(cuda) == 0);
        assertThatThrownBy(() -> Dlpack.take(cuda, tensor))
            .hasMessageContaining("was taken or deleted");
      }
    }
  }

  /** Who still has the tensor that was taken would delete another one that had its place. */
  @CudaTest
  void placeOfATakenTensor_isNotThatOfALaterOne(Cuda cuda) {
    ArrayModule<HostArray> module = HostArrays.of(cuda);
    try (HostArray one = module.full(FLOAT32, 3L, 4);
        HostArray other = module.ones(FLOAT32, 4)) {
      DlpackTensor tensor = Dlpack.export(one);
      try (NdArray taken = Dlpack.take(cuda, tensor)) {
        for (int i = 0; i < 2000; i++) {
          DlpackTensor later = Dlpack.export(other);
          assertThat(later.address()).isNotEqualTo(tensor.address());
          later.delete();
        }
        assertThat(taken.toArray(float[].class)).containsOnly(3);
      }
    }
    await(() -> used(cuda) + usedPinned(cuda) == 0);
  }

  @CudaTest
  void refusedTensorOfThisProcess_canBeTakenLater(Cuda cuda) {
    try (CudaArray a = CudaArrays.of(cuda).ones(FLOAT32, 4)) {
      DlpackTensor tensor = Dlpack.export(a.slice(Range.reversed()));
      assertThatThrownBy(() -> Dlpack.take(cuda, tensor)).hasMessageContaining("none negative");
      assertThatThrownBy(() -> Dlpack.take(cuda, tensor)).hasMessageContaining("none negative");
      tensor.delete();
    }
    await(() -> used(cuda) == 0);
  }

  @CudaTest
  void forgottenImport_isGivenBackByTheCollector(Cuda cuda) throws Exception {
    DlpackLibrary c = DlpackLibrary.open();
    int before = c.deletions();
    NdArray forgotten = Dlpack.take(cuda, new DlpackTensor(c.call("produce", 0L), true));
    assertThat(forgotten.size()).isEqualTo(6);
    forgotten = null;
    await(() -> {
      System.gc();
      return c.deletions() == before + 1;
    });
  }

  @CudaTest
  void readOnlyTensor_isNotWritten(Cuda cuda) throws Exception {
    DlpackLibrary c = DlpackLibrary.open();
    long made = c.call("produce", DlpackStructure.READ_ONLY);
    try (HostArray a = (HostArray) Dlpack.take(cuda, new DlpackTensor(made, true))) {
      assertThat(a.isReadOnly()).isTrue();
      assertThatThrownBy(() -> a.transpose().fill(1)).hasMessageContaining("read-only");
      DlpackTensor on = Dlpack.export(a);
      assertThat(c.call("number_of", on.address(), 0)).isEqualTo(DlpackStructure.READ_ONLY);
      on.delete();
      assertThatThrownBy(() -> Dlpack.export(a, DlpackOptions.DEFAULTS.withVersioned(false)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("read-only");
    }
  }

  @CudaTest
  void whatNoArrayIs_isRefusedAndNotTaken(Cuda cuda) throws Exception {
    DlpackLibrary c = DlpackLibrary.open();
    int before = c.deletions();
    Object[][] bad = {
      {0, 2L, "version: 2.0 (expected: 1.x"},
      {1, 10L, "device: 10, ROCm (expected: CPU, CUDA"},
      {1, 99L, "device: 99, unknown"},
      {1, 2L, "not known to CUDA"},
      {3, -1L, "ndim: -1 (expected: 0 to 32)"},
      {3, 33L, "ndim: 33"},
      {4, 3L, "type: code 3 with 32 bits"},
      {5, 4L, "type: code 2 with 4 bits"},
      {6, 2L, "lanes: 2 (expected: 1)"},
      {7, -2L, "sizes >= 0"},
      {7, Long.MAX_VALUE, "2^63"},
      {8, -1L, "strides: [4, -1] (expected: none negative)"},
      {8, Long.MAX_VALUE, "2^63"},
      {8, Long.MAX_VALUE / 4, "2^63-1 bytes"},
      {9, -8L, "byte_offset"},
      {9, 2L, "(expected: a multiple of 4 for FLOAT32)"},
      {10, 0L, "data: null with 6 elements"},
      {11, 0L, "shape: null with 2 axes"},
    };
    int count = 0;
    for (Object[] each : bad) {
      DlpackTensor tensor = new DlpackTensor(c.call("produce", 0L), true);
      long _ = c.call("spoil", tensor.address(), each[0], each[1]);
      assertThatThrownBy(() -> Dlpack.take(cuda, tensor))
          .as("%s", each[2])
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining((String) each[2]);
      assertThat(c.deletions()).isEqualTo(before + count);
      tensor.delete();
      count++;
      assertThat(c.deletions()).isEqualTo(before + count);
    }
    DlpackTensor far = new DlpackTensor(c.call("produce", 0L), true);
    long _ = c.call("spoil", far.address(), 1, 2L);
    long _ = c.call("spoil", far.address(), 2, 64L);
    assertThatThrownBy(() -> Dlpack.take(cuda, far)).hasMessageContaining("device: 64 (expected:");
    far.delete();
  }

  @CudaTest
  void whatCannotGoOut_isRefused(Cuda cuda) {
    HostArray heap =
        HostArrays.of(cuda).wrap(MemorySegment.ofArray(new float[4]), FLOAT32, Layout.of(4));
    assertThatThrownBy(() -> Dlpack.export(heap)).hasMessageContaining("Java heap");
    assertThatThrownBy(() -> DlpackOptions.DEFAULTS.withStream(0))
        .hasMessageContaining("stream: 0");
    assertThatThrownBy(() -> new DlpackTensor(0, true)).hasMessageContaining("address: 0");
    CudaArray closed = CudaArrays.of(cuda).zeros(FLOAT32, 4);
    closed.close();
    assertThatThrownBy(() -> Dlpack.export(closed)).hasMessageContaining("closed");
  }

  /** The consumer's stream sees what was queued before the export. */
  @CudaTest
  void consumersStream_waitsForTheProducers(Cuda cuda) {
    try (CudaStream producer = cuda.device(0).createStream();
        CudaStream consumer = cuda.device(0).createStream();
        CudaArray source = CudaArrays.of(cuda).on(producer).full(FLOAT32, 7, 100_000);
        CudaArray target = CudaArrays.of(cuda).on(consumer).empty(FLOAT32, 100_000)) {
      DlpackTensor tensor =
          Dlpack.export(source, DlpackOptions.DEFAULTS.withStream(Dlpack.streamArgument(consumer)));
      try (CudaArray taken = (CudaArray) Dlpack.take(cuda, tensor)) {
        target.copyFrom(taken, consumer);
        consumer.synchronize();
        assertThat(target.toArray(float[].class)).containsOnly(7);
      }
    }
    await(() -> used(cuda) == 0);
  }

  /** Its producer needs no word of its end. */
  @CudaTest
  void tensorWithoutADeleter_isTakenAndClosed(Cuda cuda) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 2, 3);
      for (boolean versioned : new boolean[] {false, true}) {
        MemorySegment memory = arena.allocate(DlpackStructure.BYTES, Long.BYTES);
        DlpackTensor tensor = new DlpackTensor(memory.address(), versioned);
        DlpackStructure.of(tensor)
            .write(
                new DlpackStructure.Content(
                    data.address(), DlpackDevice.CPU, 0, FLOAT32, Layout.of(3), 0),
                arena.allocate(2 * Long.BYTES, Long.BYTES),
                0);
        try (NdArray taken = Dlpack.take(cuda, tensor)) {
          assertThat(taken.toArray(float[].class)).containsExactly(1, 2, 3);
        }
        tensor.delete();
      }
    }
  }

  /** There is nothing to wait for in a stream that is closed. */
  @CudaTest
  void arrayWhoseStreamIsClosed_goesToAConsumersStream(Cuda cuda) {
    try (CudaStream consumer = cuda.device(0).createStream()) {
      CudaStream producer = cuda.device(0).createStream();
      CudaArray source = CudaArrays.of(cuda).on(producer).full(FLOAT32, 7, 10);
      producer.synchronize();
      producer.close();
      DlpackTensor tensor =
          Dlpack.export(source, DlpackOptions.DEFAULTS.withStream(Dlpack.streamArgument(consumer)));
      source.close();
      try (CudaArray taken = (CudaArray) Dlpack.take(cuda, tensor)) {
        assertThat(taken.toArray(float[].class)).containsOnly(7);
      }
    }
    await(() -> used(cuda) == 0);
  }

  @Test
  void closedCuda_keepsWhatIsOut() throws Exception {
    DlpackLibrary c = DlpackLibrary.open();
    DlpackTensor tensor;
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    tensor = Dlpack.export(numbers(cuda));
    DlpackTensor second = Dlpack.export(CudaArrays.of(cuda).zeros(FLOAT32, 4));
    cuda.close();
    assertThat(cuda.isClosed()).isTrue();
    assertThatThrownBy(() -> cuda.allocate(1)).hasMessageContaining("closed");
    assertThat(c.read("read_new", tensor.address())).isEqualTo(SUM);
    long _ = c.call("delete_elsewhere", second.address());
    assertThat(c.read("read_new", tensor.address())).isEqualTo(SUM);
    long _ = c.call("delete_elsewhere", tensor.address());
    cuda.close();
  }

  @Test
  void wrappedNativeMemory_goesOut() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        Arena arena = Arena.ofConfined()) {
      HostArray a = HostArrays.of(cuda).wrap(arena.allocate(24, 8), FLOAT32, Layout.of(2, 3));
      a.fill(2);
      DlpackTensor tensor = Dlpack.export(a);
      assertThat(DlpackLibrary.open().read("read_new", tensor.address())).isEqualTo(42);
      tensor.delete();
    }
  }

  /** Exports, closes and deletes on many threads at once: each block comes back, once. */
  @CudaTest(sanitized = false)
  void storm_leavesNothing(Cuda cuda) throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      List<Future<?>> all =
          java.util.stream.IntStream.range(0, 8)
              .<Future<?>>mapToObj(_ ->
                  threads.submit(() -> {
                    for (int i = 0; i < 300; i++) {
                      NdArray a =
                          i % 2 == 0
                              ? CudaArrays.of(cuda).empty(FLOAT32, i + 1)
                              : HostArrays.of(cuda).empty(FLOAT32, i + 1);
                      DlpackTensor tensor = Dlpack.export(a);
                      a.close();
                      tensor.delete();
                      tensor.delete();
                    }
                  }))
              .toList();
      for (Future<?> each : all) {
        each.get();
      }
    }
    await(() -> used(cuda) == 0 && usedPinned(cuda) == 0);
  }
}
