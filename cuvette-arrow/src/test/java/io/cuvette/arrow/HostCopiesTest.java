package io.cuvette.arrow;

import static io.cuvette.arrow.HostVectors.INT;
import static io.cuvette.arrow.HostVectors.field;
import static io.cuvette.arrow.HostVectors.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.arrow.memory.AllocationListener;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.OutOfMemoryException;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.junit.jupiter.api.Test;

/** Copies between the host and a device: of parts, of what lies, and without memory. */
class HostCopiesTest {
  private static final Field X = field("x", INT);

  private static DeviceVector counted(Cuda cuda, CudaStream stream, int count) {
    return counted(X, cuda, stream, count);
  }

  private static DeviceVector counted(Field field, Cuda cuda, CudaStream stream, int count) {
    Buffer data = cuda.allocate(4L * count, stream);
    data.copyFrom(MemorySegment.ofArray(IntStream.range(0, count).toArray()));
    return DeviceVector.of(field, count, null, data);
  }

  /** A column below another begins where it says, and not where its memory does. */
  @CudaTest
  void sliceBelowAList_isCopiedAndExportedFromItsOwnStart(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        DeviceVector values = counted(cuda, stream, 12)) {
      Field lists = list("v", 2, X);
      DeviceVector pairs = DeviceVector.of(lists, 3, null, List.of(values.slice(5, 7)));
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      pairs.export(array, stream);
      try (FieldVector whole = pairs.toVector(allocator, stream);
          FieldVector last = pairs.slice(2, 1).toVector(allocator, stream);
          DeviceVector taken = DeviceVector.take(array, lists, stream);
          FieldVector there = taken.toVector(allocator, stream)) {
        for (FieldVector each : List.of(whole, there)) {
          assertThat(each.getObject(0).toString()).isEqualTo("[5,6]");
          assertThat(each.getObject(1).toString()).isEqualTo("[7,8]");
          assertThat(each.getObject(2).toString()).isEqualTo("[9,10]");
        }
        assertThat(last.getObject(0).toString()).isEqualTo("[9,10]");
      }
    }
  }

  /** What is behind the last value in its byte may be anything, and is no value. */
  @CudaTest
  void oneValueMoreThanWholeBytes_isCopiedWithoutWhatIsBehindIt(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        Buffer data = cuda.allocate(40, stream);
        Buffer validity = cuda.allocate(2, stream)) {
      data.fillInts(7, stream);
      validity.fill(0xFF, stream);
      DeviceVector nine = DeviceVector.of(X, 9, validity, data);
      Field bits = field("b", new ArrowType.Bool());
      DeviceVector truths = DeviceVector.of(bits, 9, null, validity);
      try (FieldVector back = nine.toVector(allocator, stream);
          FieldVector bools = truths.toVector(allocator, stream)) {
        assertThat(back.getNullCount()).isZero();
        assertThat(bools.getDataBuffer().getByte(1)).isEqualTo((byte) 1);
      }
    }
  }

  @CudaTest
  void vectorWithoutNulls_hasNoBitsOnTheDevice(CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        IntVector ints = new IntVector("i", allocator)) {
      for (int i = 0; i < 3; i++) {
        ints.setSafe(i, i);
      }
      ints.setValueCount(3);
      try (DeviceVector there = DeviceVector.copyOf(ints, stream)) {
        assertThat(there.validity()).isEmpty();
        assertThat(there.nullCount()).isZero();
      }
      ints.setNull(1);
      try (DeviceVector there = DeviceVector.copyOf(ints, stream)) {
        assertThat(there.validity().orElseThrow().byteSize()).isEqualTo(1);
        assertThat(there.nullCount()).isEqualTo(1);
      }
    }
  }

  @Test
  void list_hasOneField() {
    FieldType pairs = FieldType.nullable(new ArrowType.FixedSizeList(2));
    Columns.check(new Field("v", pairs, List.of(X)));
    for (List<Field> fields : List.of(List.<Field>of(), List.of(X, X))) {
      assertThatThrownBy(() -> Columns.check(new Field("v", pairs, fields)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining(fields.size() + " fields and size 2 (expected: one field");
    }
  }

  /** As Arrow pads them, of whatever size they are. */
  @CudaTest
  void wideValues_beginAtAnyMultipleOfEight(Cuda cuda, CudaStream stream) {
    Field wide = field("w", new ArrowType.FixedSizeBinary(16));
    try (Buffer data = cuda.allocate(40, stream)) {
      assertThat(DeviceVector.of(wide, 2, null, data.slice(8, 32)).length()).isEqualTo(2);
      assertThatThrownBy(() -> DeviceVector.of(wide, 2, null, data.slice(4, 32)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("(expected: a multiple of 8 for");
    }
  }

  /** There is nothing to wait for. */
  @CudaTest
  void columnWithoutMemory_isExportedWithoutAnEvent(Cuda cuda, CudaStream stream) {
    try (Arena arena = Arena.ofConfined();
        DeviceVector none = counted(cuda, stream, 0);
        DeviceVector one = counted(cuda, stream, 1)) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      none.export(array, stream);
      assertThat(array.structure().syncEvent()).isZero();
      array.release();
      one.export(array, stream);
      assertThat(array.structure().syncEvent()).isNotZero();
      array.release();
    }
  }

  /** Of a part nobody has counted them; none are none of any part. */
  @CudaTest
  void nullsOfASlice_areUnknown_unlessItHasAllValues(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        FieldVector ints = HostVectors.ints(9, allocator);
        DeviceVector there = DeviceVector.copyOf(ints, stream);
        DeviceVector plain = counted(cuda, stream, 9)) {
      assertThat(there.nullCount()).isEqualTo(3);
      assertThat(there.slice(0, 9).nullCount()).isEqualTo(3);
      assertThat(there.slice(1, 8).nullCount()).isEqualTo(DeviceVector.UNKNOWN_NULLS);
      assertThat(there.slice(0, 8).nullCount()).isEqualTo(DeviceVector.UNKNOWN_NULLS);
      assertThat(plain.slice(2, 3).nullCount()).isZero();
    }
  }

  @CudaTest(simulatedOnly = true)
  void vectorThatCouldNotBeClosed_isOpen_andCanBeClosedAgain(
      CudaStream stream, ScriptedDriver script) {
    Buffer data = MemoryResource.direct().allocate(36, stream);
    DeviceVector vector = DeviceVector.of(X, 9, null, data);
    script.fail("memFree", CudaStatus.UNKNOWN, 1);
    assertThatThrownBy(vector::close).isInstanceOf(CudaException.class);
    assertThat(vector.isClosed()).isFalse();
    vector.close();
    assertThat(vector.isClosed()).isTrue();
  }

  /** Such as one of a batch that came from elsewhere: Arrow takes its word for its length. */
  @CudaTest
  void vectorWithLessMemoryThanItSays_isRefused_andNothingIsLeft(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        ArrowBuf bits = allocator.buffer(8);
        ArrowBuf few = allocator.buffer(64);
        ArrowBuf enough = allocator.buffer(512);
        IntVector vector = new IntVector("i", allocator)) {
      bits.setZero(0, 8);
      vector.loadFieldBuffers(new ArrowFieldNode(17, 3), List.of(bits, few));
      refused("data: 64 bytes (expected: >= 68", vector, stream);
      assertThat(DeviceVectorTest.used(cuda)).isZero();
      vector.loadFieldBuffers(new ArrowFieldNode(64, 3), List.of(bits, enough));
      try (DeviceVector there = DeviceVector.copyOf(vector, stream)) {
        assertThat(there.data().byteSize()).isEqualTo(256);
      }
    }
  }

  private static void refused(String why, FieldVector vector, CudaStream stream) {
    assertThatThrownBy(() -> DeviceVector.copyOf(vector, stream))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(why);
  }

  @CudaTest
  void vectorOfAnotherType_isRefused(CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        VarCharVector texts = new VarCharVector("t", allocator)) {
      texts.setSafe(0, new byte[] {'x'});
      texts.setValueCount(1);
      refused("Utf8 (expected: a type of fixed width", texts, stream);
      VectorSchemaRoot root = new VectorSchemaRoot(List.<FieldVector>of(texts));
      assertThatThrownBy(() -> DeviceVector.copyOf(root, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("Utf8 (expected: a type of fixed width");
    }
  }

  @CudaTest
  void binaryOfOneByte_isAColumn(Cuda cuda, CudaStream stream) {
    Field one = field("b", new ArrowType.FixedSizeBinary(1));
    try (DeviceVector bytes = DeviceVector.of(one, 8, null, cuda.allocate(8, stream))) {
      assertThat(bytes.length()).isEqualTo(8);
    }
  }

  /** Which would not come after what the columns were written by. */
  @CudaTest(devices = 2)
  void batch_isNotCopiedInTheOrderOfAnotherDevice(
      CudaStream stream, @OnDevice(1) CudaStream other) {
    try (BufferAllocator allocator = new RootAllocator();
        FieldVector ints = HostVectors.ints(10, allocator);
        DeviceVector there = DeviceVector.copyOf(new VectorSchemaRoot(List.of(ints)), stream)) {
      assertThatThrownBy(() -> there.toRoot(allocator, other))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("(expected: one of device 0)");
    }
  }

  /** Refuses one allocation, by its number. */
  private static final class OneRefused implements AllocationListener {
    final AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);

    @Override
    public void onPreAllocation(long bytes) {
      if (left.decrementAndGet() == 0) {
        throw new OutOfMemoryException("not this one");
      }
    }
  }

  /** Arrow itself allocates where no validity came: a column is loaded then, and another fails. */
  @CudaTest
  void allocatorWithoutMemory_atAnyAllocation_isLeftAsItWas(Cuda cuda, CudaStream stream) {
    OneRefused refusing = new OneRefused();
    Field y = field("y", INT);
    Field pair = field("p", new ArrowType.Struct(), X, y);
    try (BufferAllocator allocator = new RootAllocator(refusing, Long.MAX_VALUE);
        DeviceVector there =
            DeviceVector.of(
                pair, 9, null, List.of(counted(cuda, stream, 9), counted(y, cuda, stream, 9)))) {
      List<String> failures = new ArrayList<>();
      boolean isRefused = true;
      while (isRefused) {
        refusing.left.set(failures.size() + 1);
        try (FieldVector back = there.toVector(allocator, stream)) {
          assertThat(back.getValueCount()).isEqualTo(9);
          isRefused = false;
        } catch (OutOfMemoryException | IllegalArgumentException e) {
          failures.add(e.toString());
        }
        assertThat(allocator.getAllocatedMemory()).as("after %s", failures).isZero();
        assertThat(failures).hasSizeLessThan(20);
      }
      assertThat(failures).anyMatch(text -> text.contains("OutOfMemoryException"));
      assertThat(failures).anyMatch(text -> text.contains("Could not load buffers"));
    }
  }
}
