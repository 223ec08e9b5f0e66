package io.cuvette.testkit.seeds;

import io.cuvette.Buffer;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.PinnedBuffer;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** A buffer of eight parts of equal size, and what is known of each. Not thread-safe. */
final class PartedBlock {
  static final int PARTS = 8;

  final Buffer buffer;
  private final int partBytes;
  private final List<Part> parts = new ArrayList<>();

  /** The stream that wrote it last, those that read it since, and its one value. */
  static final class Part {
    final Set<CudaStream> readers = new LinkedHashSet<>();
    CudaStream writer;
    byte value;

    Part(CudaStream writer, byte value) {
      this.writer = writer;
      this.value = value;
    }
  }

  PartedBlock(Buffer buffer, int partBytes, CudaStream stream, byte value) {
    this.buffer = buffer;
    this.partBytes = partBytes;
    for (int i = 0; i < PARTS; i++) {
      parts.add(new Part(stream, value));
    }
  }

  Buffer slice(int from, int count) {
    return buffer.slice((long) from * partBytes, (long) count * partBytes);
  }

  List<Part> parts() {
    return parts;
  }

  List<Part> parts(int from, int count) {
    return parts.subList(from, from + count);
  }

  /** Every second one. */
  List<Part> rows(int from, int count) {
    List<Part> rows = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      rows.add(parts.get(from + 2 * i));
    }
    return rows;
  }

  CudaDevice device() {
    return buffer.device();
  }

  boolean isOfHost() {
    return buffer instanceof PinnedBuffer || buffer instanceof ManagedBuffer;
  }
}
