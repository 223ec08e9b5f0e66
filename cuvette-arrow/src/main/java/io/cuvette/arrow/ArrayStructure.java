package io.cuvette.arrow;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * Reads and writes ArrowArray and ArrowDeviceArray, whose layout the C data interface of Arrow
 * defines. A view of memory; the numbers are what others wrote.
 */
record ArrayStructure(MemorySegment memory) {
  /** ArrowArray. */
  static final long ARRAY_BYTES = 80;

  /** ArrowDeviceArray, which begins with an ArrowArray. */
  static final long BYTES = 128;

  static final int CUDA = 2;
  static final int CUDA_MANAGED = 13;

  private static final long LENGTH = 0;
  private static final long NULL_COUNT = 8;
  private static final long OFFSET = 16;
  private static final long BUFFER_COUNT = 24;
  private static final long CHILD_COUNT = 32;
  private static final long BUFFERS = 40;
  private static final long CHILDREN = 48;
  private static final long DICTIONARY = 56;
  private static final long RELEASE = 64;
  static final long PRIVATE_DATA = 72;
  private static final long DEVICE_ID = 80;
  private static final long DEVICE_TYPE = 88;
  private static final long SYNC_EVENT = 96;

  static final ArrayStructure NOWHERE = new ArrayStructure(MemorySegment.NULL);

  private static final VarHandle LONGS = ValueLayout.JAVA_LONG.varHandle();

  static ArrayStructure array(long address) {
    return new ArrayStructure(NativeMemory.calls().memory(address, ARRAY_BYTES));
  }

  long length() {
    return memory.get(JAVA_LONG, LENGTH);
  }

  long nullCount() {
    return memory.get(JAVA_LONG, NULL_COUNT);
  }

  long offset() {
    return memory.get(JAVA_LONG, OFFSET);
  }

  long bufferCount() {
    return memory.get(JAVA_LONG, BUFFER_COUNT);
  }

  long childCount() {
    return memory.get(JAVA_LONG, CHILD_COUNT);
  }

  long buffers() {
    return memory.get(JAVA_LONG, BUFFERS);
  }

  long children() {
    return memory.get(JAVA_LONG, CHILDREN);
  }

  long dictionary() {
    return memory.get(JAVA_LONG, DICTIONARY);
  }

  long deviceId() {
    return memory.get(JAVA_LONG, DEVICE_ID);
  }

  int deviceType() {
    return memory.get(JAVA_INT, DEVICE_TYPE);
  }

  long syncEvent() {
    return memory.get(JAVA_LONG, SYNC_EVENT);
  }

  /** The callback; 0 if the array is released. */
  long release() {
    return (long) LONGS.getVolatile(memory, RELEASE);
  }

  void setRelease(long callback) {
    LONGS.setVolatile(memory, RELEASE, callback);
  }

  /** Makes it a released array; false if another thread, or library, has done so. */
  boolean claim(long callback) {
    return LONGS.compareAndSet(memory, RELEASE, callback, 0L);
  }

  /** Writes what an array is, but for its end. */
  void write(DeviceVector vector, MemorySegment buffers, MemorySegment children) {
    memory.fill((byte) 0);
    memory.set(JAVA_LONG, LENGTH, vector.length());
    memory.set(JAVA_LONG, NULL_COUNT, vector.nullCount());
    memory.set(JAVA_LONG, OFFSET, vector.offset());
    memory.set(JAVA_LONG, BUFFER_COUNT, buffers.byteSize() / Long.BYTES);
    memory.set(JAVA_LONG, CHILD_COUNT, children.byteSize() / Long.BYTES);
    memory.set(JAVA_LONG, BUFFERS, buffers.address());
    memory.set(JAVA_LONG, CHILDREN, children.byteSize() == 0 ? 0 : children.address());
  }

  /** Writes the end, which makes it an array that is not released. */
  void writeEnd(long privateData, long callback) {
    memory.set(JAVA_LONG, PRIVATE_DATA, privateData);
    setRelease(callback);
  }

  /** Writes where the array is, and the address of the event. */
  void writeDevice(long id, int type, long event) {
    memory.set(JAVA_LONG, DEVICE_ID, id);
    memory.set(JAVA_INT, DEVICE_TYPE, type);
    memory.set(JAVA_LONG, SYNC_EVENT, event);
  }
}
