package io.cuvette.benchmarks;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A recorded trace in the form that {@code anchors/python/traces.py} writes for every program that
 * is not Python: four longs (operations, slots, streams, peak of live bytes), then for each
 * operation a long (bytes, or -1 for a free) and two ints (slot, stream). Immutable.
 */
final class BinaryTrace {
  private final String name;
  private final long peakLiveBytes;
  private final int slots;
  private final int streams;
  private final long[] bytes;
  private final int[] slot;
  private final int[] stream;

  BinaryTrace(Path file) throws IOException {
    name = String.valueOf(file.getFileName()).replaceFirst("\\..*", "");
    ByteBuffer in = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    int operations = Math.toIntExact(in.getLong());
    slots = Math.toIntExact(in.getLong());
    streams = Math.toIntExact(in.getLong());
    peakLiveBytes = in.getLong();
    bytes = new long[operations];
    slot = new int[operations];
    stream = new int[operations];
    for (int i = 0; i < operations; i++) {
      bytes[i] = in.getLong();
      slot[i] = in.getInt();
      stream[i] = in.getInt();
    }
  }

  String name() {
    return name;
  }

  int operations() {
    return bytes.length;
  }

  int slots() {
    return slots;
  }

  int streams() {
    return streams;
  }

  long peakLiveBytes() {
    return peakLiveBytes;
  }

  /** The bytes an operation allocates; negative if it frees the block of its slot. */
  long bytes(int operation) {
    return bytes[operation];
  }

  int slot(int operation) {
    return slot[operation];
  }

  int stream(int operation) {
    return stream[operation];
  }
}
