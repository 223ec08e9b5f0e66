package io.cuvette.arrow;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.jspecify.annotations.Nullable;

/**
 * Copies columns between the host and a device, by way of a record batch of Arrow: the buffers of
 * all columns in the order of the fields, those of a column before those below it.
 */
final class HostCopies {
  private HostCopies() {}

  static DeviceVector toDevice(FieldVector vector, CudaStream stream) {
    Columns.check(vector.getField());
    List<FieldVector> one = List.of(vector);
    VectorSchemaRoot root = new VectorSchemaRoot(one); // a view: nobody closes it
    return toDevice(root, vector.getValueCount(), stream).getFirst();
  }

  static DeviceVector toDevice(VectorSchemaRoot root, CudaStream stream) {
    Field field = DeviceVector.batch(root.getSchema().getFields());
    Columns.check(field);
    int rows = root.getRowCount();
    List<DeviceVector> columns = toDevice(root, rows, stream);
    DeviceVector.Range range = new DeviceVector.Range(rows, 0, 0);
    return new DeviceVector(stream.device(), field, range, null, null, columns);
  }

  private static List<DeviceVector> toDevice(VectorSchemaRoot root, int rows, CudaStream stream) {
    List<Field> fields = root.getSchema().getFields();
    List<AutoCloseable> made = new ArrayList<>();
    try (Scope _ = stream.use();
        ArrowRecordBatch batch = new VectorUnloader(root).getRecordBatch()) {
      Upload upload =
          new Upload(stream, batch.getNodes().iterator(), batch.getBuffers().iterator(), made);
      List<DeviceVector> columns = upload.columns(fields);
      for (DeviceVector column : columns) {
        if (column.length() != rows) {
          throw new IllegalArgumentException(
              "%s (expected: %d values, as the batch has)".formatted(column, rows));
        }
      }
      return columns;
    } catch (RuntimeException | Error e) {
      Ends.closeAfter(e, made);
      throw e;
    }
  }

  /** What of a batch is not copied yet, and the buffers of what is. */
  private record Upload(
      CudaStream stream,
      Iterator<ArrowFieldNode> nodes,
      Iterator<ArrowBuf> buffers,
      List<AutoCloseable> made) {

    List<DeviceVector> columns(List<Field> fields) {
      List<DeviceVector> columns = new ArrayList<>();
      fields.forEach(field -> columns.add(column(field)));
      return columns;
    }

    private DeviceVector column(Field field) {
      ArrowFieldNode node = nodes.next();
      long length = node.getLength();
      long nulls = node.getNullCount();
      ArrowBuf bits = buffers.next();
      Buffer validity = nulls == 0 ? null : copied("validity", bits, Columns.bytes(length, 1));
      Buffer data =
          Columns.isNested(field)
              ? null
              : copied("data", buffers.next(), Columns.bytes(length, Columns.bits(field)));
      List<DeviceVector> children =
          Columns.isNested(field) ? columns(field.getChildren()) : List.of();
      DeviceVector.Range range = new DeviceVector.Range(length, nulls, 0);
      return new DeviceVector(stream.device(), field, range, validity, data, children);
    }

    private Buffer copied(String name, ArrowBuf source, long bytes) {
      if (source.capacity() < bytes) {
        throw new IllegalArgumentException(
            "%s: %d bytes (expected: >= %d, as the vector says)"
                .formatted(name, source.capacity(), bytes));
      }
      Buffer buffer = stream.device().cuda().allocate(bytes, stream);
      made.add(buffer);
      if (bytes > 0) {
        buffer.copyFrom(NativeMemory.calls().memory(source.memoryAddress(), bytes));
      }
      return buffer;
    }
  }

  /** Copies columns of one length, of which there may be none. */
  static VectorSchemaRoot toHost(
      List<DeviceVector> columns, long length, BufferAllocator allocator, CudaStream stream) {
    List<Field> fields = columns.stream().map(DeviceVector::field).toList();
    int rows = count(length);
    Download download = new Download(allocator, new ArrayList<>(), new ArrayList<>());
    VectorSchemaRoot root = VectorSchemaRoot.create(new Schema(fields), allocator);
    try (Scope _ = stream.use()) {
      columns.forEach(download::column);
      try (ArrowRecordBatch batch = new ArrowRecordBatch(rows, download.nodes, download.buffers)) {
        new VectorLoader(root).load(batch);
      }
      return root;
    } catch (RuntimeException | Error e) {
      root.close();
      throw e;
    } finally {
      Ends.closeAll(download.buffers); // the batch and the vectors hold them themselves
    }
  }

  private static int count(long length) {
    if (length > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "length: %d (expected: <= 2^31-1 for a vector of Java)".formatted(length));
    }
    return (int) length;
  }

  /** What of a batch is here. */
  private record Download(
      BufferAllocator allocator, List<ArrowFieldNode> nodes, List<ArrowBuf> buffers) {

    void column(DeviceVector vector) {
      column(vector, vector.offset(), vector.length());
    }

    private void column(DeviceVector vector, long from, long length) {
      Field field = vector.field();
      int index = nodes.size();
      nodes.add(new ArrowFieldNode(count(length), 0));
      Buffer validity = vector.validity().orElse(null);
      MemorySegment there = copied(validity, from, length, 1);
      if (there != null) {
        nodes.set(index, new ArrowFieldNode(length, length - Bits.ones(there, length)));
      }
      if (!Columns.isNested(field)) {
        MemorySegment _ = copied(vector.data(), from, length, Columns.bits(field));
        return;
      }
      for (DeviceVector child : vector.children()) {
        long first = Columns.ofChildren(field, from);
        column(child, child.offset() + first, Columns.ofChildren(field, length));
      }
    }

    /** Adds a buffer with some values of a device's; null if there is nothing to copy. */
    private @Nullable MemorySegment copied(
        @Nullable Buffer source, long from, long count, long bits) {
      if (source == null || count == 0) {
        buffers.add(allocator.buffer(0));
        return null;
      }
      long first = from * bits / Byte.SIZE;
      int rest = (int) (from * bits % Byte.SIZE);
      long bytes = Columns.bytes(count * bits + rest, 1);
      ArrowBuf target = allocator.buffer(bytes);
      buffers.add(target);
      MemorySegment segment = NativeMemory.calls().memory(target.memoryAddress(), bytes);
      source.slice(first, bytes).copyTo(segment);
      if (bits == 1) {
        Bits.toStart(segment, rest, count);
      }
      target.writerIndex(Columns.bytes(count, bits));
      return segment;
    }
  }
}
