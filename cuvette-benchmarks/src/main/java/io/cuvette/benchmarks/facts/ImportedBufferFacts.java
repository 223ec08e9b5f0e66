package io.cuvette.benchmarks.facts;

import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.DriverPoolResource;
import io.cuvette.benchmarks.facts.Ways.Kind;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.Supplier;
import java.util.zip.CRC32C;

/** Buffers imported from another process, by good descriptors and bad ones. Not thread-safe. */
final class ImportedBufferFacts {
  private static final byte WRITTEN = 0x22;

  /** Where a descriptor's bytes say the buffer's size: behind header, kind and offset. */
  private static final int SIZE_AT = Integer.BYTES + Short.BYTES + 2 + Long.BYTES;

  private static final long PART = 500;
  private static final int TIMES_TOO_LARGE = 100;

  private final Ways ways;
  private final Recorder recorder;
  private final DriverPoolResource resource;

  ImportedBufferFacts(Ways ways, Recorder recorder, DriverPoolResource resource) {
    this.ways = ways;
    this.recorder = recorder;
    this.resource = resource;
  }

  void run(Kind kind, BufferDescriptor large, BufferDescriptor small, BufferDescriptor foreign) {
    recorder.outcome(
        "ipc." + kind + ".buffers.all", () -> buffers("ipc." + kind + ".buffer", large, small));
    recorder.outcome(
        "ipc." + kind + ".bad.all",
        () -> errors("error." + kind + ".mapped.descriptor", large, foreign));
  }

  private Buffer imported(BufferDescriptor descriptor) {
    return DescriptorFacts.imported(resource, descriptor, ways);
  }

  private void buffers(String prefix, BufferDescriptor large, BufferDescriptor small) {
    Buffer buffer = imported(large);
    recorder.fact(prefix + ".size", buffer::byteSize);
    recorder.fact(prefix + ".is_mapped", buffer::isMapped);
    recorder.fact(prefix + ".device_id", () -> buffer.device().id());
    recorder.fact(prefix + ".is_host_accessible", buffer::isHostAccessible);
    recorder.fact(prefix + ".range_size", () -> ways.rangeSize(buffer));
    recorder.fact(prefix + ".reads_exporters_write", () -> ways.firstByte(buffer));
    again(prefix + ".import_again", buffer, large);
    Buffer odd = imported(small);
    recorder.fact(prefix + ".small.size", odd::byteSize);
    recorder.fact(prefix + ".small.range_size", () -> ways.rangeSize(odd));
    recorder.fact(prefix + ".part.size", () -> sizeOf(sized(small, PART)));
    recorder.outcome(prefix + ".export_again", buffer::descriptor);
    recorder.outcome(prefix + ".write", () -> buffer.fill(WRITTEN, ways.stream()));
    ways.stream().synchronize();
    recorder.outcome(prefix + ".close", buffer::close);
    odd.close();
    ways.stream().synchronize();
  }

  private void again(String prefix, Buffer first, BufferDescriptor descriptor) {
    Buffer again = recorder.made(prefix, () -> imported(descriptor));
    if (again != null) {
      recorder.fact(prefix + ".same_handle", () -> again.address() == first.address());
      recorder.outcome(prefix + ".close", again::close);
      recorder.fact(prefix + ".first_still_reads", () -> ways.firstByte(first));
    }
  }

  private long sizeOf(BufferDescriptor descriptor) {
    try (Buffer part = imported(descriptor)) {
      return part.byteSize();
    }
  }

  private void errors(String prefix, BufferDescriptor large, BufferDescriptor foreign) {
    byte[] bytes = large.toBytes();
    byte[] garbage = new byte[bytes.length];
    Arrays.fill(garbage, (byte) 0xa5);
    refused(prefix + ".truncated", () -> Arrays.copyOf(bytes, bytes.length / 2));
    recorder.outcome(
        prefix + ".oversized",
        () -> imported(sized(large, large.byteSize() * TIMES_TOO_LARGE)).close());
    recorder.outcome(prefix + ".negative_size", () -> imported(sized(large, -1)).close());
    refused(prefix + ".garbage", () -> garbage);
    recorder.outcome(prefix + ".of_another_pool", () -> imported(foreign).close());
  }

  private void refused(String name, Supplier<byte[]> bytes) {
    recorder.outcome(name, () -> imported(BufferDescriptor.fromBytes(bytes.get())).close());
  }

  /** A descriptor that claims another size, as somebody would forge it: its checksum is right. */
  private static BufferDescriptor sized(BufferDescriptor descriptor, long byteSize) {
    byte[] bytes = descriptor.toBytes();
    ByteBuffer.wrap(bytes).putLong(SIZE_AT, byteSize);
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, bytes.length - Integer.BYTES);
    ByteBuffer.wrap(bytes).putInt(bytes.length - Integer.BYTES, (int) crc.getValue());
    BufferDescriptor forged = BufferDescriptor.fromBytes(bytes);
    if (forged.byteSize() != byteSize) {
      throw new AssertionError("the format of descriptors has changed: " + forged);
    }
    return forged;
  }
}
