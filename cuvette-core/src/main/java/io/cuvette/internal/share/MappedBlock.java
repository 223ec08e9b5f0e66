package io.cuvette.internal.share;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.block.PlainExport;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import org.jspecify.annotations.Nullable;

/** The end of one buffer of imported memory, which others may use too. */
public final class MappedBlock extends Block {
  private final Mappings table;
  private final Mapping memory;
  private final BufferDescriptor descriptor;
  private final DriverStream stream;

  /** What the memory was imported through; null for plain memory. */
  private final @Nullable DriverPool pool;

  /** What the memory needs, which need not be that pool. */
  private final MappingSource held;

  private final Runnable end = this::endByOwner;
  private final Once given = new Once();

  private MappedBlock(
      Face buffer,
      OpenStream stream,
      Mappings table,
      Mapping memory,
      BufferDescriptor descriptor,
      @Nullable DriverPool pool,
      MappingSource held) {
    super(
        buffer,
        stream.on().session().leaks().queue,
        stream.on().session().leaks().site(),
        stream.state);
    this.table = table;
    this.memory = memory;
    this.descriptor = descriptor;
    this.stream = stream.state;
    this.pool = pool;
    this.held = held;
  }

  /** Makes a buffer that uses memory which was opened for it. */
  public static Face own(
      Faces faces,
      OpenStream stream,
      Mappings table,
      Mapping memory,
      BufferDescriptor descriptor,
      @Nullable DriverPool pool,
      MappingSource held) {
    long address = memory.address() + descriptor.offset();
    Face buffer = faces.make(address, descriptor.byteSize(), stream);
    MappedBlock block = new MappedBlock(buffer, stream, table, memory, descriptor, pool, held);
    faces.own(buffer, block);
    block.opened();
    stream.on().session().children().add(block.end);
    return buffer;
  }

  public boolean isOf(DriverPool other) {
    return pool == other;
  }

  @Override
  public boolean isMapped() {
    return true;
  }

  @Override
  public boolean deniesAccess(Device device) {
    return held.deniesAccess(device);
  }

  @Override
  public boolean isPlain() {
    return pool == null;
  }

  /** The exporter's handle, which is good for any process: memory is mapped from its origin. */
  @Override
  public BufferDescriptor descriptor(Memory part) {
    if (descriptor.kind() == BufferDescriptor.Kind.PAGES) {
      throw PlainExport.cannot(part, "it was imported by PageHandles, which can be sent on");
    }
    return new BufferDescriptor(
        descriptor.kind(),
        part.address() - memory.address(),
        part.byteSize(),
        descriptor.process(),
        descriptor.deviceUuid(),
        descriptor.handle());
  }

  @Override
  public long blockBytes() {
    return descriptor.byteSize();
  }

  @Override
  public String describe() {
    return "imported buffer of %d bytes at 0x%x"
        .formatted(descriptor.byteSize(), memory.address() + descriptor.offset());
  }

  @Override
  public boolean wouldWait() {
    return stream.session.frees().areHolding();
  }

  @Override
  public void giveBack() {
    Session session = stream.session;
    if (isCaptured()) {
      stream.streams.releaseAfterGraphs(this);
    } else if (!session.frees().putOff(wouldWait(), this::releaseAgain)) {
      session.frees().free(() -> session.gate().run(this::give), this::releaseAgain);
    }
  }

  @Override
  public void failed() {
    stream.session.leaks().failed(this);
  }

  private void endByOwner() {
    abandon();
    give();
  }

  private void give() {
    given.run(() -> {
      table.close(memory, stream, uses());
      stream.session.children().remove(end);
    });
  }
}
