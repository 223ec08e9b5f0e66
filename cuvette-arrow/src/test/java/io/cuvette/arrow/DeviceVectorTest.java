package io.cuvette.arrow;

import static io.cuvette.arrow.HostVectors.FLOAT;
import static io.cuvette.arrow.HostVectors.INT;
import static io.cuvette.arrow.HostVectors.field;
import static io.cuvette.arrow.HostVectors.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import java.util.function.BooleanSupplier;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.FixedSizeBinaryVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.compare.VectorEqualsVisitor;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;

/** Columns that go to a device, to other libraries in the process, and come back. */
class DeviceVectorTest {
  static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      Thread.onSpinWait();
    }
  }

  static long used(Cuda cuda) {
    return cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes();
  }

  /** A slice of Arrow forgets the names of elements, which are not compared therefore. */
  private static void assertSame(VectorSchemaRoot found, VectorSchemaRoot expected) {
    assertThat(found.getRowCount()).isEqualTo(expected.getRowCount());
    for (int i = 0; i < expected.getFieldVectors().size(); i++) {
      FieldVector a = found.getVector(i);
      FieldVector b = expected.getVector(i);
      assertThat(a.getNullCount()).as(b.getName()).isEqualTo(b.getNullCount());
      assertThat(VectorEqualsVisitor.vectorEquals(a, b, null)).as(b.getName()).isTrue();
    }
  }

  @CudaTest
  void recordBatchOfAllTypes_goesToTheDeviceAndBack(Cuda cuda, CudaStream stream) {
    Random random = new Random(12);
    try (BufferAllocator allocator = new RootAllocator()) {
      for (int rows : new int[] {0, 1, 67, 203}) {
        try (VectorSchemaRoot root =
                HostVectors.random(HostVectors.everything(), rows, random, allocator);
            DeviceVector there = DeviceVector.copyOf(root, stream);
            VectorSchemaRoot back = there.toRoot(allocator, stream)) {
          assertThat(there.length()).isEqualTo(rows);
          assertThat(back.getSchema()).isEqualTo(root.getSchema());
          assertSame(back, root);
        }
      }
    }
    await(() -> used(cuda) == 0);
  }

  @CudaTest
  void slices_areTheRowsTheyName_alsoOfSlices_andExported(Cuda cuda, CudaStream stream) {
    Random random = new Random(34);
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        VectorSchemaRoot root =
            HostVectors.random(HostVectors.everything(), 67, random, allocator);
        DeviceVector there = DeviceVector.copyOf(root, stream)) {
      for (int i = 0; i < 6; i++) {
        int from = random.nextInt(68);
        int count = random.nextInt(68 - from);
        int more = random.nextInt(count + 1);
        DeviceVector slice = there.slice(from, count).slice(more, count - more);
        ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
        slice.export(array, stream);
        try (VectorSchemaRoot expected = root.slice(from + more, count - more);
            VectorSchemaRoot back = slice.toRoot(allocator, stream);
            DeviceVector taken = DeviceVector.take(array, root.getSchema(), stream);
            VectorSchemaRoot there2 = taken.toRoot(allocator, stream)) {
          assertThat(taken.offset()).isEqualTo(from + more);
          assertSame(back, expected);
          assertSame(there2, expected);
        }
        slice.close(); // which frees nothing
      }
      assertThat(there.isClosed()).isFalse();
    }
    await(() -> used(cuda) == 0);
  }

  @CudaTest
  void vectorOfEachType_comesBackAtItsAddress(Cuda cuda, CudaStream stream) {
    Random random = new Random(56);
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        VectorSchemaRoot root =
            HostVectors.random(HostVectors.everything(), 33, random, allocator)) {
      for (FieldVector vector : root.getFieldVectors()) {
        ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
        DeviceVector there = DeviceVector.copyOf(vector, stream);
        there.export(array, stream);
        assertThat(array.deviceType()).isEqualTo(2);
        assertThat(array.deviceId()).isZero();
        try (DeviceVector taken = DeviceVector.take(array, vector.getField(), stream)) {
          assertThat(array.isReleased()).isTrue();
          assertThat(addresses(taken)).isEqualTo(addresses(there));
          there.close(); // the taker has it still
          try (FieldVector back = taken.toVector(allocator, stream)) {
            assertThat(VectorEqualsVisitor.vectorEquals(back, vector)).isTrue();
          }
        }
      }
    }
    await(() -> used(cuda) == 0);
  }

  private static List<Long> addresses(DeviceVector vector) {
    return java.util.stream.Stream.concat(
            vector.buffers().stream().map(Buffer::address),
            vector.children().stream().flatMap(child -> addresses(child).stream()))
        .toList();
  }

  @CudaTest
  void resultsOnTheDevice_becomeColumns(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined()) {
      Buffer data = cuda.allocateManaged(24);
      data.fillInts(7, stream);
      Buffer validity = cuda.allocateManaged(1);
      validity.fill(0b11110111, stream);
      Field x = field("x", INT);
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      DeviceVector values = DeviceVector.of(x, 6, validity, data);
      assertThat(values.nullCount()).isEqualTo(DeviceVector.UNKNOWN_NULLS);
      try (DeviceVector lists = DeviceVector.of(list("v", 3, x), 2, null, List.of(values))) {
        lists.export(array, stream);
        assertThat(array.deviceType()).isEqualTo(13);
      }
      assertThat(values.isClosed()).isTrue();
      try (DeviceVector taken = DeviceVector.take(array, list("v", 3, x), stream);
          FieldVector back = taken.toVector(allocator, stream)) {
        assertThat(taken.children().getFirst().data().address()).isEqualTo(data.address());
        assertThat(back.getObject(0).toString()).isEqualTo("[7,7,7]");
        assertThat(back.getObject(1).toString()).isEqualTo("[null,7,7]");
      }
    }
  }

  /** Arrow's own layout of the type has the lower 16 bits of the width in bits: 64 of 65,600. */
  @CudaTest
  void wideBinaries_areCopiedWhole(Cuda cuda, CudaStream stream) {
    Field wide = field("w", new ArrowType.FixedSizeBinary(8200));
    byte[] value = new byte[8200];
    value[8199] = 7;
    try (BufferAllocator allocator = new RootAllocator();
        FixedSizeBinaryVector vector = new FixedSizeBinaryVector(wide, allocator)) {
      vector.setSafe(2, value);
      vector.setValueCount(3);
      try (DeviceVector there = DeviceVector.copyOf(vector, stream);
          FieldVector back = there.slice(2, 1).toVector(allocator, stream)) {
        assertThat(there.data().byteSize()).isEqualTo(3 * 8200);
        assertThat(((FixedSizeBinaryVector) back).get(0)).isEqualTo(value);
      }
    }
    try (Buffer data = cuda.allocate(8200, stream)) {
      refused("data: 8200 bytes (expected: >= 16400", () -> DeviceVector.of(wide, 2, null, data));
      for (int width : new int[] {0, -1, Integer.MIN_VALUE}) {
        Field none = field("n", new ArrowType.FixedSizeBinary(width));
        refused("n: FixedSizeBinary(" + width, () -> DeviceVector.of(none, 0, null, data));
      }
    }
  }

  @CudaTest
  void batchWithoutColumns_keepsItsRows(CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        VectorSchemaRoot rows = new VectorSchemaRoot(List.<FieldVector>of())) {
      rows.setRowCount(7);
      try (DeviceVector there = DeviceVector.copyOf(rows, stream);
          VectorSchemaRoot back = there.toRoot(allocator, stream)) {
        assertThat(back.getRowCount()).isEqualTo(7);
      }
    }
  }

  @CudaTest
  void closedOrAskewMemory_isNoColumn(Cuda cuda, CudaStream stream) {
    Field x = field("x", INT);
    Buffer closed = cuda.allocate(40, stream);
    closed.close();
    try (Buffer data = cuda.allocate(40, stream)) {
      refused("(expected: a multiple of 4", () -> DeviceVector.of(x, 4, null, data.slice(2)));
      for (Runnable call :
          List.<Runnable>of(
              () -> DeviceVector.of(x, 4, null, closed),
              () -> DeviceVector.of(x, 4, closed, data))) {
        assertThatThrownBy(call::run)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("is closed");
      }
      DeviceVector child = DeviceVector.of(x, 10, null, data);
      child.close();
      assertThatThrownBy(() -> DeviceVector.of(list("v", 3, x), 1, null, List.of(child)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
    }
  }

  @CudaTest
  void wrongColumns_areRefused_andTheBuffersRemain(Cuda cuda, CudaStream stream) {
    Field x = field("x", INT);
    Field lists = list("v", 3, x);
    try (Buffer data = cuda.allocate(40);
        Buffer pinned = cuda.allocatePinned(40);
        DeviceVector values = DeviceVector.of(x, 10, null, data)) {
      refused("length: -1 (expected: >= 0)", () -> DeviceVector.of(x, -1, null, data));
      refused("data: 40 bytes (expected: >= 44", () -> DeviceVector.of(x, 11, null, data));
      refused("at most 2^63-1 bits", () -> DeviceVector.of(x, Long.MAX_VALUE, null, data));
      refused("memory of a device, or managed", () -> DeviceVector.of(x, 10, null, pinned));
      refused("memory of a device, or managed", () -> DeviceVector.of(x, 10, pinned, data));
      Field bits = field("b", new ArrowType.Bool());
      refused(
          "validity: 1 bytes (expected: >= 2",
          () -> DeviceVector.of(bits, 9, data.slice(0, 1), data));
      refused("values of fixed width", () -> DeviceVector.of(lists, 1, null, data));
      refused("a fixed-size list or a struct", () -> DeviceVector.of(x, 1, null, List.of(values)));
      refused("12 values or more", () -> DeviceVector.of(lists, 4, null, List.of(values)));
      refused("one or more", () -> DeviceVector.of(lists, 1, null, List.of()));
      refused(
          "at most 2^63-1 values",
          () -> DeviceVector.of(lists, Long.MAX_VALUE / 2, null, List.of(values)));
      assertThat(data.isClosed()).isFalse();
      assertThatThrownBy(() -> values.slice(3, 8))
          .isInstanceOf(IndexOutOfBoundsException.class)
          .hasMessage("values: 8 from 3 on (expected: within 0 to 10)");
      assertThatThrownBy(() -> values.slice(-1, 1)).isInstanceOf(IndexOutOfBoundsException.class);
    }
    Buffer none = cuda.device(0).wrap(0, 0, null);
    for (ArrowType type :
        List.of(
            new ArrowType.Utf8(),
            new ArrowType.List(),
            new ArrowType.Null(),
            new ArrowType.Utf8View(),
            new ArrowType.Binary())) {
      Field other = type instanceof ArrowType.List ? field("l", type, x) : field("l", type);
      refused("l: " + type, () -> DeviceVector.of(other, 0, null, none));
    }
    refused(
        "without a dictionary",
        () ->
            DeviceVector.of(
                new Field(
                    "d", new FieldType(true, INT, new DictionaryEncoding(1, false, null)), null),
                0,
                null,
                none));
  }

  private static void refused(String why, Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(why);
  }

  @CudaTest
  void closedVector_isRefused_andItsStreamToo(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        FieldVector ints = HostVectors.ints(10, allocator)) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      DeviceVector vector = DeviceVector.copyOf(ints, stream);
      DeviceVector slice = vector.slice(1, 2);
      assertThatThrownBy(vector.children()::removeFirst).isInstanceOf(RuntimeException.class);
      vector.close();
      vector.close();
      for (DeviceVector each : List.of(vector, slice)) {
        assertThat(each.isClosed()).isTrue();
        assertThatThrownBy(() -> each.export(array, stream)).hasMessageContaining("is closed");
        assertThatThrownBy(() -> each.slice(0, 1)).hasMessageContaining("is closed");
        assertThatThrownBy(() -> each.toVector(allocator, stream))
            .hasMessageContaining("is closed");
      }
      assertThat(array.isReleased()).isTrue();
      stream.close();
      assertThatThrownBy(() -> DeviceVector.copyOf(ints, stream))
          .isInstanceOf(IllegalStateException.class);
      assertThat(used(cuda)).isZero();
    }
  }

  @CudaTest
  void capturingStream_neitherExportsNorTakes(Cuda cuda, CudaStream stream, CudaStream other) {
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        FieldVector ints = HostVectors.ints(10, allocator);
        DeviceVector vector = DeviceVector.copyOf(ints, other)) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      vector.export(array, other);
      ArrowDeviceArray second = ArrowDeviceArray.allocate(arena);
      try (CudaGraph _ =
          stream.capture(() -> {
            assertThatThrownBy(() -> vector.export(second, stream))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is capturing");
            assertThatThrownBy(() -> DeviceVector.take(array, ints.getField(), stream))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is capturing");
          })) {}
      assertThat(second.isReleased()).isTrue();
      array.release();
      array.release(); // harmless
    }
    await(() -> used(cuda) == 0);
  }

  /** What was queued before the export is done for the consumer's stream. */
  @CudaTest
  void consumersStream_waitsForTheProducers(Cuda cuda, CudaStream producer, CudaStream consumer) {
    int count = 100_000;
    try (Arena arena = Arena.ofConfined();
        Buffer target = cuda.allocate(4L * count, consumer);
        DeviceVector vector =
            DeviceVector.of(field("x", INT), count, null, cuda.allocate(4L * count, producer))) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      vector.data().fillInts(7, producer);
      vector.export(array, producer);
      try (DeviceVector taken = DeviceVector.take(array, vector.field(), consumer)) {
        target.copyFrom(taken.data(), consumer);
        consumer.synchronize();
        int[] back = new int[count];
        target.copyTo(MemorySegment.ofArray(back));
        assertThat(back).containsOnly(7);
      }
    }
  }

  @CudaTest(devices = 2)
  void anotherDevicesStream_isRefused(Cuda cuda, CudaStream stream, @OnDevice(1) CudaStream other) {
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        FieldVector ints = HostVectors.ints(10, allocator);
        DeviceVector vector = DeviceVector.copyOf(ints, stream)) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      assertThatThrownBy(() -> vector.export(array, other))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> vector.toVector(allocator, other))
          .as("which would not order the copy")
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("(expected: one of device 0)");
      vector.export(array, stream);
      assertThatThrownBy(() -> DeviceVector.take(array, ints.getField(), other))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device_id: 0 (expected: 1");
      assertThatThrownBy(() -> vector.export(array, stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("expected: released");
      array.release();
    }
    await(() -> used(cuda) == 0);
  }

  @CudaTest
  void lyingVectorOfTheHost_isRefused_andNothingIsLeft(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        IntVector ints = (IntVector) HostVectors.ints(10, allocator);
        IntVector fewer = (IntVector) HostVectors.ints(5, allocator)) {
      VectorSchemaRoot root =
          new VectorSchemaRoot(
              new Schema(List.of(ints.getField(), fewer.getField())), List.of(ints, fewer), 10);
      assertThatThrownBy(() -> DeviceVector.copyOf(root, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("expected: 10 values");
      VectorSchemaRoot few = new VectorSchemaRoot(root.getSchema(), List.of(fewer, ints), 5);
      assertThatThrownBy(() -> DeviceVector.copyOf(few, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("expected: 5 values");
      assertThat(used(cuda)).isZero();
      try (DeviceVector vector = DeviceVector.copyOf(ints, stream)) {
        assertThatThrownBy(() -> vector.toRoot(allocator, stream))
            .hasMessageContaining("expected: a struct without nulls");
      }
      try (DeviceVector floats =
          DeviceVector.of(field("x", FLOAT), 1, null, cuda.allocate(4, stream))) {
        assertThatThrownBy(() ->
                DeviceVector.of(
                        field("s", new ArrowType.Struct(), field("x", FLOAT)),
                        1,
                        null,
                        List.of(floats))
                    .data())
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("children()");
      }
    }
  }
}
