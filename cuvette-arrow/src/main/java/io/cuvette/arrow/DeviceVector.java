package io.cuvette.arrow;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.jspecify.annotations.Nullable;

/**
 * A column of Apache Arrow in memory of a device: values of fixed width (numbers, booleans, dates,
 * times, decimals, binaries of one size), lists of a fixed size, or a struct of columns, such as a
 * record batch; each with the bits that say which values are there, unless all are. Columns of
 * other types are refused by name.
 *
 * <p>Libraries in the process hand columns to each other by {@link #export} and {@link #take},
 * without a copy. What was exported stays where it is until its consumer releases it, on any
 * thread, also if the vector or its {@link Cuda} is closed before; what was taken is released once,
 * when it is closed or forgotten, after the work that used it.
 *
 * <p>Arguments are checked before anything changes; a {@code null} throws a {@link
 * NullPointerException} that names it. Thread-safe.
 */
public final class DeviceVector implements AutoCloseable {
  /** The count of nulls where nobody has counted them. */
  public static final long UNKNOWN_NULLS = -1;

  private final CudaDevice device;
  private final Field field;
  private final long length;
  private final long nullCount;
  private final long offset;
  private final @Nullable Buffer validity;
  private final @Nullable Buffer data;
  private final List<DeviceVector> children;

  /** Whether it is closed; views share it. */
  private final AtomicBoolean closed;

  private final boolean owner;

  DeviceVector(
      CudaDevice device,
      Field field,
      Range range,
      @Nullable Buffer validity,
      @Nullable Buffer data,
      List<DeviceVector> children) {
    this(device, field, range, validity, data, children, new AtomicBoolean(), true);
  }

  private DeviceVector(
      CudaDevice device,
      Field field,
      Range range,
      @Nullable Buffer validity,
      @Nullable Buffer data,
      List<DeviceVector> children,
      AtomicBoolean closed,
      boolean owner) {
    this.device = device;
    this.field = field;
    this.length = range.length;
    this.nullCount = validity == null ? 0 : range.nullCount;
    this.offset = range.offset;
    this.validity = validity;
    this.data = data;
    this.children = List.copyOf(children);
    this.closed = closed;
    this.owner = owner;
  }

  /** Which values of the memory a column has. */
  record Range(long length, long nullCount, long offset) {}

  /**
   * {@return a column of values of fixed width in memory that is there, such as results of a
   * kernel} The buffers are the column's from now on; after an error they remain the caller's.
   *
   * @param field its name and type
   * @param length how many values, >= 0
   * @param validity a bit for each value, the lowest of a byte first, 1 where there is one; null if
   *     all are there
   * @param data the values; of booleans a bit each
   * @throws IllegalArgumentException if the type has no fixed width, a buffer is too small, not of
   *     one device, or on the host, or the values are not aligned to their size
   * @throws IllegalStateException if a buffer is closed
   */
  public static DeviceVector of(Field field, long length, @Nullable Buffer validity, Buffer data) {
    Objects.requireNonNull(data, "data");
    checkNested(Objects.requireNonNull(field, "field"), false);
    Columns.checkData(data, checkLength(length), field);
    return made(data.device(), field, length, validity, data, List.of());
  }

  /**
   * {@return a column of lists of a fixed size, or of structs, over columns that are there} These
   * and the buffer are the column's from now on; after an error they remain the caller's.
   *
   * @param field its name and type, and the fields of the columns below it
   * @param length how many lists or structs, >= 0
   * @param validity a bit for each of them, as for values
   * @param children the columns below it, one or more, in the order of the fields
   * @throws IllegalArgumentException if the type is another, or the children are not those of the
   *     field, too short, or not of one device
   * @throws IllegalStateException if the buffer or a child is closed
   */
  public static DeviceVector of(
      Field field, long length, @Nullable Buffer validity, List<DeviceVector> children) {
    Objects.requireNonNull(children, "children");
    checkNested(Objects.requireNonNull(field, "field"), true);
    List<Field> below = children.stream().map(DeviceVector::field).toList();
    if (children.isEmpty() || !below.equals(field.getChildren())) {
      throw new IllegalArgumentException(
          "children: %s (expected: one or more, as the field says: %s)"
              .formatted(below, field.getChildren()));
    }
    CudaDevice device = children.getFirst().device;
    long needed = Columns.ofChildren(field, checkLength(length));
    for (DeviceVector child : children) {
      child.checkOpen();
      if (child.length < needed || !child.device.equals(device)) {
        throw new IllegalArgumentException(
            "child: %s (expected: %d values or more on %s)".formatted(child, needed, device));
      }
    }
    return made(device, field, length, validity, null, children);
  }

  private static void checkNested(Field field, boolean nested) {
    Columns.check(field);
    if (Columns.isNested(field) != nested) {
      throw new IllegalArgumentException(
          "field: %s (expected: %s)"
              .formatted(
                  field, nested ? "a fixed-size list or a struct" : "values of fixed width"));
    }
  }

  private static long checkLength(long length) {
    if (length < 0) {
      throw new IllegalArgumentException("length: %d (expected: >= 0)".formatted(length));
    }
    return length;
  }

  private static DeviceVector made(
      CudaDevice device,
      Field field,
      long length,
      @Nullable Buffer validity,
      @Nullable Buffer data,
      List<DeviceVector> children) {
    if (validity != null) {
      Columns.check("validity", validity, length, 1);
      if (!validity.device().equals(device)) {
        throw new IllegalArgumentException(
            "validity: %s (expected: memory of %s)".formatted(validity, device));
      }
    }
    Range range = new Range(length, UNKNOWN_NULLS, 0);
    return new DeviceVector(device, field, range, validity, data, children);
  }

  /**
   * {@return a copy of a vector of the host, in memory of the current allocator} Waits until it is
   * there.
   *
   * @param vector the vector, which stays the caller's
   * @param stream in whose order memory is taken and bytes are copied
   * @throws IllegalArgumentException if there is no column of its type
   * @throws IllegalStateException if something is closed
   * @throws UnsupportedOperationException without the module of native access
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public static DeviceVector copyOf(FieldVector vector, CudaStream stream) {
    Objects.requireNonNull(vector, "vector");
    Objects.requireNonNull(stream, "stream");
    return HostCopies.toDevice(vector, stream);
  }

  /**
   * {@return a copy of a record batch of the host: a struct of its columns} Otherwise as {@link
   * #copyOf(FieldVector, CudaStream)}.
   *
   * @param root the batch, which stays the caller's
   * @param stream in whose order memory is taken and bytes are copied
   */
  public static DeviceVector copyOf(VectorSchemaRoot root, CudaStream stream) {
    Objects.requireNonNull(root, "root");
    Objects.requireNonNull(stream, "stream");
    return HostCopies.toDevice(root, stream);
  }

  /** The field of a record batch. */
  static Field batch(List<Field> fields) {
    return new Field("", FieldType.notNullable(new ArrowType.Struct()), fields);
  }

  /**
   * Takes an array over from another library. Work queued in the stream from now on comes after the
   * producer's. An array that is refused remains the caller's.
   *
   * @param array the array, which is the vector's from now on: the structure is released
   * @param field its type, as {@code Data.importField} of {@code org.apache.arrow.c} reads it of an
   *     {@code ArrowSchema}
   * @param stream of the device that the array is on
   * @return the vector, which the caller closes
   * @throws IllegalArgumentException if no column can be what the array says, or the field is of a
   *     type that there is none for: of another vendor's device, the host, or a device that is not
   *     the stream's, with another number of buffers or children than the type has, lengths,
   *     offsets or counts that are negative or too large, without memory or with less than it says
   * @throws IllegalStateException if the array was released, something is closed, or the stream is
   *     capturing
   * @throws UnsupportedOperationException without the module of native access
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public static DeviceVector take(ArrowDeviceArray array, Field field, CudaStream stream) {
    Objects.requireNonNull(array, "array");
    Objects.requireNonNull(field, "field");
    Objects.requireNonNull(stream, "stream");
    return ArrayImport.take(array, field, stream);
  }

  /**
   * Takes a record batch over: an array that is a struct. Otherwise as {@link
   * #take(ArrowDeviceArray, Field, CudaStream)}.
   *
   * @param array the array, which is the vector's from now on
   * @param schema the fields of the columns
   * @param stream of the device that the array is on
   * @return the vector, which the caller closes
   */
  public static DeviceVector take(ArrowDeviceArray array, Schema schema, CudaStream stream) {
    Objects.requireNonNull(schema, "schema");
    return take(array, batch(schema.getFields()), stream);
  }

  /**
   * Exports the column with the columns below it, as what they are: nothing is copied. The event of
   * the array comes after the work that is queued in the stream by now.
   *
   * @param out where the array goes, which is released; its consumer moves or releases it
   * @param stream the stream that the column was written in last, of its device
   * @throws IllegalArgumentException if the stream is another device's
   * @throws IllegalStateException if something is closed, the stream is capturing, or {@code out}
   *     holds an array
   * @throws UnsupportedOperationException without the module of native access
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public void export(ArrowDeviceArray out, CudaStream stream) {
    Objects.requireNonNull(out, "out");
    Objects.requireNonNull(stream, "stream");
    checkOpen();
    checkStream(device, stream);
    out.checkReleased();
    ArrayExports.export(this, out, stream);
  }

  private static void checkDevice(CudaDevice device, CudaStream stream) {
    if (!stream.device().equals(device)) {
      throw new IllegalArgumentException(
          "stream: %s (expected: one of %s)".formatted(stream, device));
    }
  }

  /** Checks that a stream can order an array of a device. */
  static void checkStream(CudaDevice device, CudaStream stream) {
    checkDevice(device, stream);
    if (stream.isCapturing()) {
      throw new IllegalStateException(
          "stream: %s is capturing a graph (expected: one that runs its work)".formatted(stream));
    }
  }

  /**
   * {@return a copy in memory of the host, which the caller closes} Waits until it is there.
   *
   * @param allocator where the memory is from
   * @param stream in whose order bytes are copied, of its device
   * @throws IllegalArgumentException if it has more values than a vector of Java, or the stream is
   *     another device's
   * @throws IllegalStateException if something is closed
   * @throws UnsupportedOperationException without the module of native access
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public FieldVector toVector(BufferAllocator allocator, CudaStream stream) {
    Objects.requireNonNull(allocator, "allocator");
    Objects.requireNonNull(stream, "stream");
    checkOpen();
    checkDevice(device, stream);
    return HostCopies.toHost(List.of(this), length, allocator, stream).getVector(0);
  }

  /**
   * {@return a copy of a struct as a record batch of the host, which the caller closes} Otherwise
   * as {@link #toVector}.
   *
   * @param allocator where the memory is from
   * @param stream in whose order bytes are copied, of its device
   * @throws IllegalArgumentException if it is no struct, or may have nulls, which no batch has
   */
  public VectorSchemaRoot toRoot(BufferAllocator allocator, CudaStream stream) {
    Objects.requireNonNull(allocator, "allocator");
    Objects.requireNonNull(stream, "stream");
    checkOpen();
    checkDevice(device, stream);
    if (!Columns.isStruct(field) || nullCount != 0) {
      throw new IllegalArgumentException(this + " (expected: a struct without nulls)");
    }
    List<DeviceVector> columns = new ArrayList<>();
    children.forEach(child -> columns.add(child.slice(offset, length)));
    return HostCopies.toHost(columns, length, allocator, stream);
  }

  /**
   * {@return a part of the column as a view, which frees nothing and dies with it}
   *
   * @param from the first value, 0 to {@link #length()}
   * @param count how many, 0 to what follows the first
   * @throws IndexOutOfBoundsException for a part that is not inside
   */
  public DeviceVector slice(long from, long count) {
    if (from < 0 || count < 0 || count > length - from) {
      throw new IndexOutOfBoundsException(
          "values: %d from %d on (expected: within 0 to %d)".formatted(count, from, length));
    }
    checkOpen();
    long nulls = count == length ? nullCount : UNKNOWN_NULLS;
    return view(new Range(count, nulls, offset + from));
  }

  private DeviceVector view(Range range) {
    List<DeviceVector> below = new ArrayList<>();
    children.forEach(
        child -> below.add(child.view(new Range(child.length, child.nullCount, child.offset))));
    return new DeviceVector(device, field, range, validity, data, below, closed, false);
  }

  private void checkOpen() {
    if (isClosed()) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /** {@return the device whose memory it is in} */
  public CudaDevice device() {
    return device;
  }

  /** {@return the name and the type} */
  public Field field() {
    return field;
  }

  /** {@return how many values it has} */
  public long length() {
    return length;
  }

  /** {@return how many of them are null, or {@link #UNKNOWN_NULLS}} */
  public long nullCount() {
    return nullCount;
  }

  /** {@return where its first value is in the buffers and, of a nested column, in its children} */
  public long offset() {
    return offset;
  }

  /** {@return the bits that say which values are there; empty if all are} */
  public Optional<Buffer> validity() {
    return Optional.ofNullable(validity);
  }

  /**
   * {@return the values}
   *
   * @throws IllegalStateException for a list or a struct, whose values are in its children
   */
  public Buffer data() {
    if (data == null) {
      throw new IllegalStateException(this + " has no values of its own (expected: children())");
    }
    return data;
  }

  /** {@return the columns below it, which are closed with it} */
  public List<DeviceVector> children() {
    return children;
  }

  /** {@return whether it is closed, or what it is a slice of} */
  public boolean isClosed() {
    return closed.get();
  }

  /**
   * Frees the memory, or releases what was taken, after the work that used it; does nothing for a
   * slice, and the second time.
   *
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  @Override
  public void close() {
    if (owner && closed.compareAndSet(false, true)) {
      try {
        Ends.closeAll(parts());
      } catch (RuntimeException e) {
        closed.set(false); // such as for a segment in use: it can be closed later
        throw e;
      }
    }
  }

  private List<AutoCloseable> parts() {
    List<AutoCloseable> parts = new ArrayList<>(children);
    for (Buffer buffer : buffers()) {
      parts.add(buffer);
    }
    return parts;
  }

  /** The buffers that are there. */
  List<Buffer> buffers() {
    return Stream.of(validity, data).flatMap(Stream::ofNullable).toList();
  }

  @Override
  public String toString() {
    return "%sDeviceVector of %d %s on %s"
        .formatted(owner ? "" : "view of a ", length, field, device);
  }
}
