package io.cuvette;

import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** The end of one buffer of imported memory, which others may use too. */
final class ImportedLifetime extends BlockLifetime {
  private final ImportTable table;
  private final ImportedMemory memory;
  private final BufferDescriptor descriptor;
  private final StreamState stream;

  /** What the memory was imported through, and is kept by; null for plain memory. */
  private final @Nullable ResourceLifetime resource;

  private final Runnable end = this::endByOwner;
  private final AtomicBoolean given = new AtomicBoolean();

  private ImportedLifetime(
      BufferBase buffer,
      ImportTable table,
      ImportedMemory memory,
      BufferDescriptor descriptor,
      @Nullable ResourceLifetime resource) {
    super(
        buffer,
        buffer.device().cuda().leaks().queue,
        buffer.device().cuda().leaks().site(),
        buffer.stream().state);
    this.table = table;
    this.memory = memory;
    this.descriptor = descriptor;
    this.stream = buffer.stream().state;
    this.resource = resource;
  }

  /** Makes a buffer a user of memory that was opened for it. */
  static void own(
      BufferBase buffer,
      ImportTable table,
      ImportedMemory memory,
      BufferDescriptor descriptor,
      @Nullable ResourceLifetime resource) {
    ImportedLifetime lifetime = new ImportedLifetime(buffer, table, memory, descriptor, resource);
    buffer.own(lifetime);
    buffer.device().cuda().children().add(lifetime.end);
  }

  boolean isOf(ResourceLifetime other) {
    return resource == other;
  }

  @Override
  boolean isMapped() {
    return true;
  }

  /** The exporter's handle, which is good for any process: memory is mapped from its origin. */
  @Override
  BufferDescriptor descriptor(BufferBase part) {
    return new BufferDescriptor(
        descriptor.kind(),
        part.address() - memory.address(),
        part.byteSize(),
        descriptor.process(),
        descriptor.deviceUuid(),
        descriptor.handle());
  }

  @Override
  long blockBytes() {
    return descriptor.byteSize();
  }

  @Override
  String describe() {
    return "imported buffer of %d bytes at 0x%x"
        .formatted(descriptor.byteSize(), memory.address() + descriptor.offset());
  }

  @Override
  void release() {
    give();
  }

  private void endByOwner() {
    abandon();
    give();
  }

  /** Once for the user, and once more by the Cuda if that failed. */
  private void give() {
    if (given.compareAndSet(false, true)) {
      try {
        table.close(memory, stream, uses());
      } catch (RuntimeException e) {
        given.set(false);
        throw e;
      }
      stream.cuda.children().remove(end);
      if (resource != null) {
        resource.drop();
      }
    }
  }
}
