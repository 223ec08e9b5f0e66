package io.cuvette.arrow;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cuvette.Buffer;
import io.cuvette.CudaDevice;
import io.cuvette.PinnedBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.vector.types.pojo.Field;
import org.jspecify.annotations.Nullable;

/**
 * What an array of another library says, checked: that it is one of its field.
 *
 * @param name the way to it, for errors
 * @param validity null if all values are there
 * @param data null for a list or a struct
 */
record ArrayContent(
    String name,
    Field field,
    DeviceVector.Range range,
    @Nullable Memory validity,
    @Nullable Memory data,
    List<ArrayContent> children) {

  /** Memory on the device; without bytes at any address. */
  record Memory(long address, long bytes) {}

  /**
   * Reads an array.
   *
   * @param needed how many values whoever has it uses
   * @throws IllegalArgumentException if it cannot be what it says
   */
  static ArrayContent read(String name, ArrayStructure array, Field field, long needed) {
    long length = array.length();
    long offset = array.offset();
    require(length >= 0, name, "length", length, ">= 0");
    require(offset >= 0, name, "offset", offset, ">= 0");
    require(length <= Long.MAX_VALUE - offset, name, "length", length, "<= 2^63-1 - " + offset);
    require(length >= needed, name, "length", length, ">= " + needed + ", as its parent says");
    long nulls = array.nullCount();
    require(nulls >= -1 && nulls <= length, name, "null_count", nulls, "-1 to " + length);
    require(array.dictionary() == 0, name, "dictionary", array.dictionary(), "null, for " + field);
    long[] buffers = buffers(name, array, field);
    long end = offset + length;
    Memory validity = validity(name, buffers[0], nulls, end);
    Memory data = Columns.isNested(field) ? null : data(name, buffers[1], field, end);
    List<ArrayContent> children = children(name, array, field, end);
    DeviceVector.Range range = new DeviceVector.Range(length, nulls, offset);
    return new ArrayContent(name, field, range, validity, data, children);
  }

  private static long[] buffers(String name, ArrayStructure array, Field field) {
    int expected = Columns.isNested(field) ? 1 : 2;
    long count = array.bufferCount();
    require(count == expected, name, "n_buffers", count, expected + ", for " + field);
    return pointers(name, "buffers", array.buffers(), expected);
  }

  private static @Nullable Memory validity(String name, long address, long nulls, long end) {
    if (address == 0) {
      require(nulls <= 0, name, "buffers[0]", 0, "an address, for " + nulls + " nulls");
      return null;
    }
    return end == 0 ? null : new Memory(address, Columns.bytes(end, 1));
  }

  private static Memory data(String name, long address, Field field, long end) {
    long bytes = bytes(name, end, Columns.bits(field));
    require(
        address != 0 || bytes == 0, name, "buffers[1]", 0, "an address, for " + end + " values");
    long alignment = Columns.alignment(field);
    require(address % alignment == 0, name, "buffers[1]", address, "a multiple of " + alignment);
    return new Memory(address, bytes);
  }

  private static long bytes(String name, long count, long bits) {
    try {
      return Columns.bytes(count, bits);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(name + ": " + e.getMessage(), e);
    }
  }

  private static List<ArrayContent> children(
      String name, ArrayStructure array, Field field, long end) {
    List<Field> fields = Columns.isNested(field) ? field.getChildren() : List.of();
    long count = array.childCount();
    require(count == fields.size(), name, "n_children", count, fields.size() + ", for " + field);
    long[] addresses = pointers(name, "children", array.children(), fields.size());
    List<ArrayContent> children = new ArrayList<>();
    for (int i = 0; i < addresses.length; i++) {
      String child = "%s.children[%d]".formatted(name, i);
      require(
          addresses[i] != 0 && addresses[i] % Long.BYTES == 0,
          name,
          "children[" + i + "]",
          addresses[i],
          "the address of an array");
      ArrayStructure structure = ArrayStructure.array(addresses[i]);
      require(structure.release() != 0, child, "release", 0, "an array that is not released");
      children.add(read(child, structure, fields.get(i), ofChildren(name, field, end)));
    }
    return children;
  }

  private static long ofChildren(String name, Field field, long end) {
    try {
      return Columns.ofChildren(field, end);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(name + ": " + e.getMessage(), e);
    }
  }

  private static long[] pointers(String name, String which, long address, int count) {
    if (count == 0) {
      return new long[0];
    }
    require(address != 0 && address % Long.BYTES == 0, name, which, address, count + " addresses");
    return NativeMemory.calls().memory(address, (long) count * Long.BYTES).toArray(JAVA_LONG);
  }

  private static void require(
      boolean holds, String name, String what, long found, String expected) {
    if (!holds) {
      boolean isAddress = what.contains("buffers[") || what.contains("children[");
      throw new IllegalArgumentException(
          "%s.%s: %s (expected: %s)"
              .formatted(name, what, isAddress ? "0x%x".formatted(found) : found, expected));
    }
  }

  /** Checks that the driver knows the memory as what the array says. */
  void check(CudaDevice device) {
    check(device, "buffers[0]", validity);
    check(device, "buffers[1]", data);
    children.forEach(child -> child.check(device));
  }

  private void check(CudaDevice device, String which, @Nullable Memory memory) {
    if (memory == null || memory.bytes == 0) {
      return;
    }
    try (Buffer seen = device.wrap(memory.address, memory.bytes, null)) {
      if (seen instanceof PinnedBuffer) {
        throw new IllegalArgumentException(
            "0x%x is memory of the host (expected: of %s)".formatted(memory.address, device));
      }
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("%s.%s: %s".formatted(name, which, e.getMessage()), e);
    }
  }
}
