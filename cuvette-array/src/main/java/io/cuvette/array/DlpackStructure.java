package io.cuvette.array;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.cuvette.driver.ForeignCalls;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Reads and writes DLManagedTensorVersioned and DLManagedTensor, whose layout dlpack.h defines. A
 * view of memory; the numbers are what others wrote.
 */
final class DlpackStructure {
  static final int MAJOR = 1;
  static final int MINOR = 1;
  static final long READ_ONLY = 1;
  static final long IS_COPIED = 2;

  /** The larger of both structures. */
  static final long BYTES = 80;

  private static final long OLD_BYTES = 64;

  // DLManagedTensorVersioned
  private static final long DELETER = 16;
  private static final long FLAGS = 24;
  private static final long TENSOR = 32;

  // DLManagedTensor
  private static final long OLD_DELETER = 56;

  // DLTensor
  private static final long DEVICE_TYPE = 8;
  private static final long DEVICE_ID = 12;
  private static final long RANK = 16;
  private static final long TYPE = 20;
  private static final long SHAPE = 24;
  private static final long STRIDES = 32;
  private static final long BYTE_OFFSET = 40;

  private static final class Calls {
    static final ForeignCalls FOUND =
        ForeignCalls.find()
            .orElseThrow(() ->
                new UnsupportedOperationException(
                    "DLPack needs native access (expected: the module io.cuvette.ffm)"));
  }

  private final MemorySegment memory;
  private final long address;
  private final boolean isVersioned;
  private final long tensor;

  DlpackStructure(MemorySegment memory, boolean isVersioned) {
    this.memory = memory;
    this.address = memory.address();
    this.isVersioned = isVersioned;
    this.tensor = isVersioned ? TENSOR : 0;
  }

  static DlpackStructure of(DlpackTensor tensor) {
    long bytes = tensor.isVersioned() ? BYTES : OLD_BYTES;
    return new DlpackStructure(calls().memory(tensor.address(), bytes), tensor.isVersioned());
  }

  static ForeignCalls calls() {
    try {
      return Calls.FOUND;
    } catch (ExceptionInInitializerError | NoClassDefFoundError e) {
      throw new UnsupportedOperationException(
          "DLPack needs native access (expected: the module io.cuvette.ffm)", e);
    }
  }

  /** What a tensor is, but for its end. */
  record Content(
      long data, int deviceType, int deviceId, ElementType type, Layout layout, long flags) {
    boolean isReadOnly() {
      return (flags & READ_ONLY) != 0;
    }
  }

  /** Writes a tensor; shape and strides go into a part of the memory of their own. */
  void write(Content content, MemorySegment axes, long deleter) {
    Layout layout = content.layout();
    int rank = layout.rank();
    if (isVersioned) {
      memory.set(JAVA_INT, 0, MAJOR);
      memory.set(JAVA_INT, Integer.BYTES, MINOR);
      memory.set(JAVA_LONG, FLAGS, content.flags());
    }
    memory.set(JAVA_LONG, isVersioned ? DELETER : OLD_DELETER, deleter);
    memory.set(JAVA_LONG, tensor, content.data());
    memory.set(JAVA_INT, tensor + DEVICE_TYPE, content.deviceType());
    memory.set(JAVA_INT, tensor + DEVICE_ID, content.deviceId());
    memory.set(JAVA_INT, tensor + RANK, rank);
    memory.set(JAVA_BYTE, tensor + TYPE, (byte) DlpackType.code(content.type()));
    memory.set(JAVA_BYTE, tensor + TYPE + 1, (byte) (content.type().bytes() * Byte.SIZE));
    memory.set(JAVA_SHORT, tensor + TYPE + 2, (short) 1);
    memory.set(JAVA_LONG, tensor + SHAPE, axes.address());
    memory.set(JAVA_LONG, tensor + STRIDES, axes.address() + (long) rank * Long.BYTES);
    memory.set(JAVA_LONG, tensor + BYTE_OFFSET, 0);
    MemorySegment.copy(layout.shape(), 0, axes, JAVA_LONG, 0, rank);
    MemorySegment.copy(layout.strides(), 0, axes, JAVA_LONG, (long) rank * Long.BYTES, rank);
  }

  /** Reads a tensor, and refuses what no array is. */
  Content read() {
    if (isVersioned && memory.get(JAVA_INT, 0) != MAJOR) {
      throw new IllegalArgumentException(
          "version: %d.%d (expected: %d.x; nothing else of the tensor can be read)"
              .formatted(
                  memory.get(JAVA_INT, 0) & 0xFFFF_FFFFL,
                  memory.get(JAVA_INT, Integer.BYTES) & 0xFFFF_FFFFL,
                  MAJOR));
    }
    int device = memory.get(JAVA_INT, tensor + DEVICE_TYPE);
    DlpackDevice.check(device);
    ElementType type =
        DlpackType.of(
            memory.get(JAVA_BYTE, tensor + TYPE) & 0xFF,
            memory.get(JAVA_BYTE, tensor + TYPE + 1) & 0xFF,
            memory.get(JAVA_SHORT, tensor + TYPE + 2) & 0xFFFF);
    Layout layout = layout();
    return new Content(
        data(layout),
        device,
        memory.get(JAVA_INT, tensor + DEVICE_ID),
        type,
        layout,
        isVersioned ? memory.get(JAVA_LONG, FLAGS) : 0);
  }

  /** The address of the first element; 0 without elements. */
  private long data(Layout layout) {
    long data = memory.get(JAVA_LONG, tensor);
    long offset = memory.get(JAVA_LONG, tensor + BYTE_OFFSET);
    if (layout.size() == 0) {
      return 0;
    }
    if (data == 0) {
      throw new IllegalArgumentException(
          "data: null with %d elements (expected: an address)".formatted(layout.size()));
    }
    if (offset < 0 || data + offset < 0 != data < 0) {
      throw new IllegalArgumentException(
          "byte_offset: %s from 0x%x (expected: inside the address space)"
              .formatted(Long.toUnsignedString(offset), data));
    }
    return data + offset;
  }

  private Layout layout() {
    int rank = memory.get(JAVA_INT, tensor + RANK);
    if (rank < 0 || rank > Layout.MAX_RANK) {
      throw new IllegalArgumentException(
          "ndim: %d (expected: 0 to %d)".formatted(rank, Layout.MAX_RANK));
    }
    long[] shape = numbers("shape", memory.get(JAVA_LONG, tensor + SHAPE), rank);
    long at = memory.get(JAVA_LONG, tensor + STRIDES);
    if (at == 0) {
      return Layout.of(shape);
    }
    long[] strides = numbers("strides", at, rank);
    for (int axis = 0; axis < rank; axis++) {
      if (strides[axis] < 0 && shape[axis] > 1) {
        throw new IllegalArgumentException(
            "strides: %s (expected: none negative)".formatted(Arrays.toString(strides)));
      }
      strides[axis] = shape[axis] > 1 ? strides[axis] : Math.max(strides[axis], 0);
    }
    return Layout.strided(shape, strides, 0);
  }

  private static long[] numbers(String name, long at, int count) {
    if (count == 0) {
      return new long[0];
    }
    if (at == 0) {
      throw new IllegalArgumentException(
          "%s: null with %d axes (expected: an address)".formatted(name, count));
    }
    return calls().memory(at, (long) count * Long.BYTES).toArray(JAVA_LONG);
  }

  long address() {
    return address;
  }

  /** The function that deletes the tensor; 0 for none. */
  long deleter() {
    return memory.get(JAVA_LONG, isVersioned ? DELETER : OLD_DELETER);
  }

  /** Calls the deleter, if there is one. */
  void delete() {
    long deleter = deleter();
    if (deleter != 0) {
      calls().call(deleter, address);
    }
  }
}
