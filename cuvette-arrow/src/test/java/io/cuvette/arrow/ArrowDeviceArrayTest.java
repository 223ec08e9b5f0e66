package io.cuvette.arrow;

import static io.cuvette.arrow.DeviceVectorTest.await;
import static io.cuvette.arrow.DeviceVectorTest.used;
import static io.cuvette.arrow.HostVectors.INT;
import static io.cuvette.arrow.HostVectors.field;
import static io.cuvette.arrow.HostVectors.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ForeignLoan;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.junit.jupiter.api.Test;

/** Arrays that go to a consumer in C, and come from a producer in C that may lie. */
class ArrowDeviceArrayTest {
  private static final Field X = field("x", INT);
  private static final Field LISTS = list("v", 2, X);
  private static final Field PAIR = field("p", new ArrowType.Struct(), X, field("y", INT));

  @Test
  void structures_areThoseOfC() throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    assertThat(IntStream.range(0, 8).mapToLong(i -> c.call("layout", i)).toArray())
        .containsExactly(80, 128, 40, 64, 72, 80, 88, 96);
  }

  private static DeviceVector ints(Cuda cuda, CudaStream stream, int count) {
    Buffer data = cuda.allocate(4L * count, stream);
    data.fillInts(7, stream);
    return DeviceVector.of(X, count, null, data);
  }

  private static DeviceVector pairs(Cuda cuda, CudaStream stream) {
    DeviceVector second = DeviceVector.of(field("y", INT), 4, null, cuda.allocate(16, stream));
    return DeviceVector.of(PAIR, 4, null, List.of(ints(cuda, stream, 4), second));
  }

  private static ArrowDeviceArray taken(long address) {
    return ArrowDeviceArray.at(address);
  }

  @CudaTest
  void consumerInC_seesTheArray_andReleasesOnItsThread(Cuda cuda, CudaStream stream)
      throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    try (Arena arena = Arena.ofConfined()) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      assertThat(array.isReleased()).isTrue();
      assertThatThrownBy(array::deviceType).isInstanceOf(IllegalStateException.class);
      long at = array.address();
      try (DeviceVector pairs = pairs(cuda, stream)) {
        pairs.slice(1, 2).export(array, stream);
        assertThat(numbers(c, at, -1, 0, 1, 2, 3, 4, 9, 12, 13, 15))
            .containsExactly(2, 0, 1, 1, 2, 0, 0, 2, 0);
        for (int i = 0; i < 2; i++) {
          long data = pairs.children().get(i).data().address();
          assertThat(numbers(c, at, i, 0, 1, 2, 3, 4, 9, 10))
              .containsExactly(4, 0, 0, 2, 0, 0, data);
        }
        assertThat(c.call("number_of", at, -1L, 14)).as("the event").isNotZero();
      }
      assertThat(used(cuda)).as("closed here").isPositive();
      assertThat(c.call("release_elsewhere", at)).isEqualTo(1);
      assertThat(array.isReleased()).isTrue();
      await(() -> used(cuda) == 0);
    }
  }

  private static long[] numbers(ArrowLibrary c, long at, long child, int... which) {
    return IntStream.of(which).mapToLong(each -> c.call("number_of", at, child, each)).toArray();
  }

  @CudaTest
  void movedChild_outlivesItsParent(Cuda cuda, CudaStream stream) throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    try (Arena arena = Arena.ofConfined()) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      long second;
      try (DeviceVector pairs = pairs(cuda, stream)) {
        pairs.export(array, stream);
        second = pairs.children().get(1).data().address();
      }
      long both = used(cuda);
      long child = c.call("move", array.address(), 1L);
      long parent = c.call("move", array.address(), -1L);
      assertThat(array.isReleased()).isTrue();
      assertThat(c.call("release_elsewhere", parent)).isEqualTo(1);
      ForeignLoan after = ForeignLoan.of(() -> {});
      after.giveBack();
      await(after::isOver); // and so is what was given back before
      assertThat(used(cuda)).isEqualTo(both / 2);
      assertThat(c.call("first_buffer", child)).isEqualTo(second);
      assertThat(c.call("release_elsewhere", child)).isEqualTo(1);
      await(() -> used(cuda) == 0);
    }
  }

  @CudaTest
  void producerInC_isReleasedOnce(Cuda cuda, CudaStream stream) throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    try (Buffer data = cuda.allocate(48, stream);
        Buffer bits = cuda.allocate(8, stream)) {
      long before = c.releases();
      ArrowDeviceArray array = taken(c.call("produce", 10L, 2L, bits.address(), data.address()));
      DeviceVector vector = DeviceVector.take(array, X, stream);
      assertThat(array.isReleased()).isTrue();
      assertThatThrownBy(() -> DeviceVector.take(array, X, stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("released (expected: an array that nobody has taken)");
      assertThat(vector.offset()).isEqualTo(2);
      assertThat(vector.nullCount()).isEqualTo(DeviceVector.UNKNOWN_NULLS);
      assertThat(vector.validity().orElseThrow().byteSize()).isEqualTo(2);
      assertThat(vector.data().byteSize()).isEqualTo(48);
      assertThat(c.releases()).isEqualTo(before);
      vector.close();
      vector.close();
      assertThat(c.releases()).isEqualTo(before + 1);

      long nested = c.call("produce_nested", 3L, 1L, 6L, data.address());
      try (DeviceVector lists = DeviceVector.take(taken(nested), LISTS, stream)) {
        assertThat(lists.children().getFirst().data().address()).isEqualTo(data.address());
        assertThat(c.releases()).isEqualTo(before + 1);
      }
      assertThat(c.releases()).as("with its child").isEqualTo(before + 3);

      long empty = c.call("produce", 0L, 0L, 0L, data.address());
      DeviceVector none = DeviceVector.take(taken(empty), X, stream);
      assertThat(c.releases()).as("without memory").isEqualTo(before + 4);
      none.close();
      assertThat(c.releases()).isEqualTo(before + 4);

      ArrowDeviceArray unwanted = taken(c.call("produce", 1L, 0L, 0L, data.address()));
      unwanted.release();
      unwanted.release();
      assertThat(c.releases()).isEqualTo(before + 5);
      assertThat(c.call("late_releases")).isZero();
    }
  }

  @Test
  void forgottenVector_isReleasedByTheCollector() throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    long before = c.releases();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        CudaStream stream = cuda.device(0).createStream();
        Buffer data = cuda.allocate(48, stream)) {
      DeviceVector forgotten =
          DeviceVector.take(taken(c.call("produce", 10L, 0L, 0L, data.address())), X, stream);
      assertThat(forgotten.length()).isEqualTo(10);
      forgotten = null;
      await(() -> {
        System.gc();
        long _ = cuda.leaksFound();
        return c.releases() == before + 1;
      });
    }
  }

  @Test
  void closedCuda_releasesWhatWasTaken_andKeepsWhatIsOut() throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    long before = c.releases();
    try (Arena arena = Arena.ofConfined()) {
      ArrowDeviceArray out = ArrowDeviceArray.allocate(arena);
      Cuda cuda = Cuda.open(CudaOptions.simulated());
      CudaStream stream = cuda.device(0).createStream();
      DeviceVector made = ints(cuda, stream, 10);
      made.export(out, stream);
      DeviceVector _ =
          DeviceVector.take(
              taken(c.call("produce", 10L, 0L, 0L, made.data().address())), X, stream);
      cuda.close();
      assertThat(c.call("number_of", out.address(), -1L, 0)).isEqualTo(10);
      assertThat(c.releases()).as("while memory is out nothing is taken back").isEqualTo(before);
      assertThatThrownBy(() -> made.export(out, stream)).isInstanceOf(IllegalStateException.class);
      assertThat(c.call("release_elsewhere", out.address())).isEqualTo(1);
      await(() -> c.releases() == before + 1);
      cuda.close();
    }
  }

  private record Lie(int what, long value, String why) {}

  private static final long HUGE = 1L << 62;

  private static final List<Lie> OF_VALUES =
      List.of(
          new Lie(0, -1, "array.length: -1 (expected: >= 0)"),
          new Lie(0, HUGE, "at most 2^63-1 bits"),
          new Lie(0, 1 << 30, "buffers[1]: "),
          new Lie(0, Long.MAX_VALUE, "array.length: 9223372036854775807 (expected: <= 2^63-1"),
          new Lie(1, -2, "array.null_count: -2 (expected: -1 to 10)"),
          new Lie(1, 11, "array.null_count: 11 (expected: -1 to 10)"),
          new Lie(1, 1, "array.buffers[0]: 0x0 (expected: an address, for 1 nulls)"),
          new Lie(2, -1, "array.offset: -1 (expected: >= 0)"),
          new Lie(2, 1 << 30, "buffers[1]: "),
          new Lie(3, 1, "array.n_buffers: 1 (expected: 2, for x: Int(32, true))"),
          new Lie(3, 3, "array.n_buffers: 3"),
          new Lie(3, -1, "array.n_buffers: -1"),
          new Lie(4, 1, "array.n_children: 1 (expected: 0"),
          new Lie(4, -1, "array.n_children: -1"),
          new Lie(5, 0, "array.buffers: 0 (expected: 2 addresses)"),
          new Lie(7, 8, "array.dictionary: 8 (expected: null"),
          new Lie(9, 8, "buffers[0]: "),
          new Lie(10, 0, "array.buffers[1]: 0x0 (expected: an address, for 12 values)"),
          new Lie(10, 6, "array.buffers[1]: 0x6 (expected: a multiple of 4)"),
          new Lie(10, 8, "buffers[1]: "),
          new Lie(12, 1, "device_id: 1 (expected: 0"),
          new Lie(12, -1, "device_id: -1"),
          new Lie(12, HUGE, "device_id: 4611686018427387904"),
          new Lie(13, 1, "device_type: 1, CPU (expected: 2, CUDA, or 13, CUDA managed; org.apache"),
          new Lie(13, 3, "device_type: 3, CUDA host"),
          new Lie(13, 10, "device_type: 10, ROCm (expected: 2, CUDA, or 13, CUDA managed)"),
          new Lie(13, 0, "device_type: 0, unknown"),
          new Lie(13, 99, "device_type: 99, unknown"),
          new Lie(14, 4, "sync_event: 0x4 (expected: null, or the address of a CUevent)"));

  private static final List<Lie> OF_CHILDREN =
      List.of(
          new Lie(0, -1, "array.children[0].length: -1"),
          new Lie(0, 5, "array.children[0].length: 5 (expected: >= 6, as its parent says)"),
          new Lie(2, -1, "array.children[0].offset: -1"),
          new Lie(3, 1, "array.children[0].n_buffers: 1"),
          new Lie(8, 0, "array.children[0].release: 0 (expected: an array that is not released)"),
          new Lie(10, 0, "array.children[0].buffers[1]: 0x0"),
          new Lie(7, 8, "array.children[0].dictionary"));

  private static final List<Lie> OF_LISTS =
      List.of(
          new Lie(0, HUGE, "at most 2^63-1 values"),
          new Lie(4, 0, "array.n_children: 0 (expected: 1, for v"),
          new Lie(4, 2, "array.n_children: 2"),
          new Lie(3, 2, "array.n_buffers: 2 (expected: 1"),
          new Lie(6, 0, "array.children: 0 (expected: 1 addresses)"),
          new Lie(11, 0, "array.children[0]: 0x0 (expected: the address of an array)"));

  @CudaTest
  void whatNoColumnIs_isRefused_andRemainsTheProducers(Cuda cuda, CudaStream stream)
      throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    try (Buffer data = cuda.allocate(48, stream)) {
      for (Lie lie : OF_VALUES) {
        refused(c, c.call("produce", 10L, 2L, 0L, data.address()), -1, lie, X, stream);
      }
      for (Lie lie : OF_CHILDREN) {
        refused(c, c.call("produce_nested", 3L, 1L, 6L, data.address()), 0, lie, LISTS, stream);
      }
      for (Lie lie : OF_LISTS) {
        refused(c, c.call("produce_nested", 3L, 1L, 6L, data.address()), -1, lie, LISTS, stream);
      }
      refused(
          c,
          c.call("produce_nested", 3L, 2L, 3L, data.address()),
          1,
          new Lie(0, 2, "array.children[1].length: 2 (expected: >= 3"),
          PAIR,
          stream);
      refused(
          c,
          c.call("produce", 10L, 2L, 0L, data.address()),
          -1,
          new Lie(0, 10, "Utf8 (expected: a type of fixed width"),
          field("s", new ArrowType.Utf8()),
          stream);
    }
    assertThatThrownBy(() -> ArrowDeviceArray.at(0)).hasMessageContaining("address: 0x0");
    assertThatThrownBy(() -> ArrowDeviceArray.at(12)).hasMessageContaining("a multiple of 8");
  }

  private static void refused(
      ArrowLibrary c, long made, long child, Lie lie, Field field, CudaStream stream) {
    long before = c.releases();
    ArrowDeviceArray array = taken(made);
    long _ = c.call("spoil", made, child, lie.what, lie.value);
    assertThatThrownBy(() -> DeviceVector.take(array, field, stream))
        .as(lie.why)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(lie.why);
    assertThat(array.isReleased()).isFalse();
    assertThat(c.releases()).isEqualTo(before);
  }

  /** An event that the driver does not know; on a GPU such a handle may be anything. */
  @Test
  void unknownEvent_isRefused_andNothingIsReleased() throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        Arena arena = Arena.ofConfined();
        CudaStream stream = cuda.device(0).createStream();
        Buffer data = cuda.allocate(48, stream)) {
      long before = c.releases();
      long made = c.call("produce", 10L, 2L, 0L, data.address());
      var cell = arena.allocate(8, 8);
      long _ = c.call("spoil", made, -1L, 14, cell.address());
      assertThatThrownBy(() -> DeviceVector.take(taken(made), X, stream))
          .hasMessageContaining("sync_event: 0x");
      cell.set(java.lang.foreign.ValueLayout.JAVA_LONG, 0, 12345);
      assertThatThrownBy(() -> DeviceVector.take(taken(made), X, stream))
          .isInstanceOf(io.cuvette.driver.CudaException.class);
      assertThat(c.releases()).isEqualTo(before);
      try (CudaEvent event = stream.record()) {
        cell.set(java.lang.foreign.ValueLayout.JAVA_LONG, 0, event.handle());
        DeviceVector.take(taken(made), X, stream).close();
      }
      assertThat(c.releases()).isEqualTo(before + 1);
    }
  }

  /** One of many takers gets the array, and of many who release it one does. */
  @CudaTest(sanitized = false)
  void manyThreads_takeAndReleaseOnce(Cuda cuda) throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    long before = c.releases();
    int rounds = 100;
    AtomicInteger got = new AtomicInteger();
    try (ExecutorService threads = Executors.newFixedThreadPool(4);
        Buffer data = cuda.allocate(48);
        CudaStream stream = cuda.device(0).createStream()) {
      for (int round = 0; round < rounds; round++) {
        ArrowDeviceArray array = taken(c.call("produce", 10L, 0L, 0L, data.address()));
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
          boolean takes = i % 2 == 0;
          all.add(threads.submit(() -> takeOrRelease(array, takes, stream, got)));
        }
        for (Future<?> each : all) {
          each.get();
        }
        assertThat(c.releases()).isEqualTo(before + round + 1);
      }
    }
    assertThat(c.call("late_releases")).isZero();
    assertThat(got.get()).isBetween(0, rounds);
  }

  private static void takeOrRelease(
      ArrowDeviceArray array, boolean takes, CudaStream stream, AtomicInteger got) {
    if (!takes) {
      array.release();
      return;
    }
    try (DeviceVector _ = DeviceVector.take(array, X, stream)) {
      got.incrementAndGet();
    } catch (IllegalStateException e) {
      assertThat(e).hasMessageContaining("expected: an array that nobody has taken");
    }
  }

  /** Exports beside closes and releases on many threads: each block comes back, once. */
  @CudaTest(sanitized = false)
  void storm_leavesNothing(Cuda cuda) throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    try (ExecutorService threads = Executors.newFixedThreadPool(6)) {
      List<Future<?>> all =
          IntStream.range(0, 6)
              .<Future<?>>mapToObj(n -> threads.submit(() -> trips(cuda, c, n)))
              .toList();
      for (Future<?> each : all) {
        each.get();
      }
    }
    await(() -> used(cuda) == 0);
  }

  private static void trips(Cuda cuda, ArrowLibrary c, int seed) {
    try (CudaStream stream = cuda.device(0).createStream();
        Arena arena = Arena.ofConfined()) {
      for (int i = 0; i < 60; i++) {
        ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
        try (DeviceVector pairs = pairs(cuda, stream)) {
          pairs.export(array, stream);
        }
        switch ((i + seed) % 3) {
          case 0 -> DeviceVector.take(array, PAIR, stream).close();
          case 1 -> assertThat(c.call("release_elsewhere", array.address())).isEqualTo(1);
          default -> array.release();
        }
      }
    }
  }

  /** The end of the Cuda beside taking and giving: each array is released once, or refused. */
  @Test
  void closeOfTheCuda_besideTakes_releasesWhatWasTaken() throws Exception {
    ArrowLibrary c = ArrowLibrary.open();
    try (ExecutorService threads = Executors.newFixedThreadPool(1);
        Arena arena = Arena.ofConfined()) {
      for (int round = 0; round < 60; round++) {
        long before = c.releases();
        Cuda cuda = Cuda.open(CudaOptions.simulated());
        CudaStream stream = cuda.device(0).createStream();
        Buffer data = cuda.allocate(48, stream);
        ArrowDeviceArray array = taken(c.call("produce", 10L, 0L, 0L, data.address()));
        ArrowDeviceArray out = ArrowDeviceArray.allocate(arena);
        Future<?> closing = threads.submit(cuda::close);
        try {
          DeviceVector.take(array, X, stream).export(out, stream);
        } catch (IllegalStateException e) {
          assertThat(e).hasMessageContaining("closed");
        }
        closing.get();
        out.release();
        long expected = array.isReleased() ? 1 : 0;
        await(() -> c.releases() == before + expected);
        array.release();
        assertThat(c.releases()).isEqualTo(before + 1);
      }
    }
    assertThat(c.call("late_releases")).isZero();
  }

  /** The close of the vector beside its export: all of it, or one error and nothing. */
  @CudaTest(sanitized = false)
  void exportBesideClose_isWhole(Cuda cuda) throws Exception {
    int rounds = 200;
    AtomicInteger refused = new AtomicInteger();
    try (ExecutorService threads = Executors.newFixedThreadPool(2);
        CudaStream stream = cuda.device(0).createStream();
        Arena arena = Arena.ofConfined()) {
      for (int i = 0; i < rounds; i++) {
        DeviceVector pairs = pairs(cuda, stream);
        ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
        Future<?> closing = threads.submit(pairs::close);
        try {
          pairs.export(array, stream);
          assertThat(array.isReleased()).isFalse();
        } catch (IllegalStateException e) {
          refused.incrementAndGet();
          assertThat(array.isReleased()).isTrue();
          assertThat(e).hasMessageContaining("closed");
        }
        closing.get();
        array.release();
      }
    }
    assertThat(refused.get()).isBetween(0, rounds);
    await(() -> used(cuda) == 0);
  }

  /** The schema goes beside the array, by Arrow's own library. */
  @CudaTest
  void arrowsOwnSchema_saysWhatTheArrayIs(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        FieldVector ints = HostVectors.ints(10, allocator);
        ArrowSchema schema = ArrowSchema.allocateNew(allocator)) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      try (DeviceVector vector = DeviceVector.copyOf(ints, stream)) {
        Data.exportField(allocator, vector.field(), null, schema);
        vector.export(array, stream);
      }
      Field field = Data.importField(allocator, schema, null);
      try (DeviceVector taken = DeviceVector.take(array, field, stream);
          FieldVector back = taken.toVector(allocator, stream)) {
        assertThat(back.getField()).isEqualTo(ints.getField());
        assertThat(back.getNullCount()).isEqualTo(4);
        assertThat(back.getObject(4)).isEqualTo(4);
      }
    }
    await(() -> used(cuda) == 0);
  }
}
