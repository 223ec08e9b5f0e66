package io.cuvette.arrow.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.arrow.ArrowDeviceArray;
import io.cuvette.arrow.DeviceVector;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.FixedSizeListVector;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;

/** The programs of docs/guide/arrow.md. */
class ArrowGuideTest {
  private static final int ROWS = 100;
  private static final int SIZE = 8;

  private static VectorSchemaRoot embeddings(BufferAllocator allocator) {
    ArrowType number = new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE);
    Field elements = new Field("x", FieldType.notNullable(number), null);
    Field vectors =
        new Field(
            "vector", FieldType.notNullable(new ArrowType.FixedSizeList(SIZE)), List.of(elements));
    Field ids = new Field("id", FieldType.notNullable(new ArrowType.Int(32, true)), null);
    VectorSchemaRoot root = VectorSchemaRoot.create(new Schema(List.of(ids, vectors)), allocator);
    root.allocateNew();
    IntVector id = (IntVector) root.getVector(0);
    FixedSizeListVector list = (FixedSizeListVector) root.getVector(1);
    Float4Vector values = (Float4Vector) list.getDataVector();
    for (int i = 0; i < ROWS; i++) {
      id.setSafe(i, i);
      list.setNotNull(i);
      for (int k = 0; k < SIZE; k++) {
        values.setSafe(i * SIZE + k, i + k);
      }
    }
    root.setRowCount(ROWS);
    return root;
  }

  @CudaTest
  void recordBatch_goesThereAndBack(Cuda cuda, CudaStream stream) {
    try (BufferAllocator allocator = new RootAllocator();
        VectorSchemaRoot root = embeddings(allocator);
        DeviceVector there = DeviceVector.copyOf(root, stream)) { // a struct of its columns
      DeviceVector vectors = there.children().get(1);
      Buffer floats = vectors.children().getFirst().data(); // what kernels are given
      assert vectors.length() == 100 && floats.byteSize() == 100 * 8 * 4;
      try (VectorSchemaRoot part = there.slice(10, 20).toRoot(allocator, stream)) {
        assert part.getRowCount() == 20;
        assertThat(part.getVector(1).getObject(3).toString()).startsWith("[13.0,14.0");
      }
    }
  }

  @CudaTest
  void column_goesToAnotherLibrary(Cuda cuda, CudaStream stream, CudaStream other) {
    try (BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        ArrowSchema schema = ArrowSchema.allocateNew(allocator);
        VectorSchemaRoot root = embeddings(allocator);
        Buffer result = cuda.allocate(4 * ROWS, other)) {
      DeviceVector produced = DeviceVector.copyOf(root.getVector(0), stream);
      // the producer
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      Data.exportField(allocator, produced.field(), null, schema); // of org.apache.arrow.c
      produced.export(array, stream); // the work that is queued in the stream comes first
      produced.close(); // the consumer has it still

      // the consumer, in Java here
      Field field = Data.importField(allocator, schema, null);
      try (DeviceVector taken = DeviceVector.take(array, field, other)) {
        taken.data().copyTo(result, other);
        other.synchronize();
      } // which releases it
      int[] ids = new int[ROWS];
      result.copyTo(MemorySegment.ofArray(ids));
      assertThat(ids[42]).isEqualTo(42);
    }
  }
}
