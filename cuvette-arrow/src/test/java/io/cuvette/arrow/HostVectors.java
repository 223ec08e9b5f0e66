package io.cuvette.arrow;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.types.DateUnit;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.IntervalUnit;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;

/** Columns of the host for tests. Stateless. */
final class HostVectors {
  static final ArrowType FLOAT = new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE);
  static final ArrowType INT = new ArrowType.Int(32, true);

  private HostVectors() {}

  /** Each type of fixed width. */
  static List<ArrowType> types() {
    List<ArrowType> all = new ArrayList<>();
    for (int bits = 8; bits <= 64; bits *= 2) {
      all.add(new ArrowType.Int(bits, true));
      all.add(new ArrowType.Int(bits, false));
    }
    for (FloatingPointPrecision each : FloatingPointPrecision.values()) {
      all.add(new ArrowType.FloatingPoint(each));
    }
    all.add(new ArrowType.Bool());
    all.add(new ArrowType.Decimal(38, 3, 128));
    all.add(new ArrowType.Decimal(76, 3, 256));
    all.add(new ArrowType.FixedSizeBinary(5));
    for (DateUnit each : DateUnit.values()) {
      all.add(new ArrowType.Date(each));
    }
    for (IntervalUnit each : IntervalUnit.values()) {
      all.add(new ArrowType.Interval(each));
    }
    for (TimeUnit each : TimeUnit.values()) {
      int bits = each == TimeUnit.SECOND || each == TimeUnit.MILLISECOND ? 32 : 64;
      all.add(new ArrowType.Time(each, bits));
      all.add(new ArrowType.Timestamp(each, null));
      all.add(new ArrowType.Timestamp(each, "UTC"));
      all.add(new ArrowType.Duration(each));
    }
    return all;
  }

  static Field field(String name, ArrowType type, Field... children) {
    return new Field(name, FieldType.nullable(type), List.of(children));
  }

  static Field list(String name, int size, Field child) {
    return field(name, new ArrowType.FixedSizeList(size), child);
  }

  /** One column of each type, one of lists, one of lists of lists and one of structs. */
  static Schema everything() {
    List<Field> fields = new ArrayList<>();
    types().forEach(type -> fields.add(field(type.toString(), type)));
    fields.add(list("vectors", 3, field("x", FLOAT)));
    fields.add(list("bits", 5, field("x", new ArrowType.Bool())));
    fields.add(list("tables", 2, list("rows", 3, field("x", INT))));
    fields.add(field("pair", new ArrowType.Struct(), field("a", INT), field("b", FLOAT)));
    return new Schema(fields);
  }

  /** Random values, and random nulls in columns that have an odd place. */
  static VectorSchemaRoot random(
      Schema schema, int rows, Random random, BufferAllocator allocator) {
    VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator);
    List<ArrowFieldNode> nodes = new ArrayList<>();
    List<ArrowBuf> buffers = new ArrayList<>();
    schema.getFields().forEach(field -> fill(field, rows, random, allocator, nodes, buffers));
    try (ArrowRecordBatch batch = new ArrowRecordBatch(rows, nodes, buffers)) {
      new VectorLoader(root).load(batch);
    } finally {
      buffers.forEach(ArrowBuf::close);
    }
    return root;
  }

  private static void fill(
      Field field,
      long rows,
      Random random,
      BufferAllocator allocator,
      List<ArrowFieldNode> nodes,
      List<ArrowBuf> buffers) {
    boolean hasNulls = nodes.size() % 2 == 1;
    ArrowBuf validity = random(allocator, (rows + 7) / 8, random);
    long nulls = 0;
    for (long i = 0; i < rows; i++) {
      int bit = validity.getByte(i / 8) >> i % 8 & 1;
      nulls += hasNulls ? 1 - bit : 0;
    }
    nodes.add(new ArrowFieldNode(rows, nulls));
    buffers.add(validity);
    if (!Columns.isNested(field)) {
      buffers.add(random(allocator, (rows * Columns.bits(field) + 7) / 8, random));
    }
    for (Field child : field.getChildren()) {
      fill(child, Columns.ofChildren(field, rows), random, allocator, nodes, buffers);
    }
  }

  private static ArrowBuf random(BufferAllocator allocator, long bytes, Random random) {
    ArrowBuf buffer = allocator.buffer(bytes);
    for (long i = 0; i < bytes; i++) {
      buffer.setByte(i, random.nextInt());
    }
    return buffer.writerIndex(bytes);
  }

  /** A column of ints, every third of which is null. */
  static FieldVector ints(int count, BufferAllocator allocator) {
    org.apache.arrow.vector.IntVector vector =
        new org.apache.arrow.vector.IntVector("i", allocator);
    vector.allocateNew(count);
    for (int i = 0; i < count; i++) {
      if (i % 3 == 0) {
        vector.setNull(i);
      } else {
        vector.set(i, i);
      }
    }
    vector.setValueCount(count);
    return vector;
  }
}
